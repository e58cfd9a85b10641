//! English text as it is said: numbers, money, times, dates, units, symbols and abbreviations as
//! words. Both engines get their text from here. (Their own front ends read `$4.99` as "dollar four
//! point nine nine", `5 km` as "five kay em" and split a sentence after `Dr.`.)

use super::tags::is_cjk;

/// A word as it is said, or a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Letters (and apostrophes) of one or more words.
    Word {
        /// Byte offset of the written word it stands for.
        at: usize,
        /// As it is said; words are separated by one space.
        text: String,
    },
    /// One of `, ; : . ! ?`
    Mark(char),
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn pick<'a>(table: &[&'a str], index: u64) -> &'a str {
    usize::try_from(index).ok().and_then(|index| table.get(index)).copied().unwrap_or_default()
}

/// "three hundred five" for 305.
fn cardinal(n: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let head = format!("{} {name}", cardinal(n / unit));
        if n.is_multiple_of(unit) { head } else { format!("{head} {}", cardinal(n % unit)) }
    };
    match n {
        0..20 => pick(&SMALL, n).to_owned(),
        20..100 if n.is_multiple_of(10) => pick(&TENS, n / 10).to_owned(),
        20..100 => format!("{} {}", pick(&TENS, n / 10), pick(&SMALL, n % 10)),
        100..1_000 => scaled(100, "hundred"),
        1_000..1_000_000 => scaled(1_000, "thousand"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "million"),
        1_000_000_000..1_000_000_000_000 => scaled(1_000_000_000, "billion"),
        _ => scaled(1_000_000_000_000, "trillion"),
    }
}

/// "twenty first" for 21.
fn ordinal(n: u64) -> String {
    let words = cardinal(n);
    let (head, last) = match words.rsplit_once(' ') {
        Some((head, last)) => (format!("{head} "), last),
        None => (String::new(), words.as_str()),
    };
    let last = match last {
        "one" => "first".into(),
        "two" => "second".into(),
        "three" => "third".into(),
        "five" => "fifth".into(),
        "eight" => "eighth".into(),
        "nine" => "ninth".into(),
        "twelve" => "twelfth".into(),
        other => match other.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{other}th"),
        },
    };
    head + &last
}

/// "nineteen eighty four" for 1984.
fn year(n: u64) -> String {
    match (n / 100, n % 100) {
        (20, 0..10) => cardinal(n),
        (high, 0) if high % 10 == 0 => cardinal(n),
        (high, 0) => format!("{} hundred", cardinal(high)),
        (high, low @ 1..10) => format!("{} oh {}", cardinal(high), cardinal(low)),
        (high, low) => format!("{} {}", cardinal(high), cardinal(low)),
    }
}

fn plural(words: &str) -> String {
    match words.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if words.ends_with('x') => format!("{words}es"),
        None => format!("{words}s"),
    }
}

fn digits(text: &str) -> String {
    let names: Vec<&str> = text
        .chars()
        .filter_map(|c| c.to_digit(10))
        .map(|digit| pick(&SMALL, u64::from(digit)))
        .collect();
    names.join(" ")
}

/// A whole number or a decimal, with or without thousands separators; `None` when it is neither.
fn number(text: &str) -> Option<String> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let grouped = whole.contains(',');
    let plain: String = whole.chars().filter(|c| *c != ',').collect();
    let all_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !(all_digits(&plain) || (plain.is_empty() && fraction.is_some())) {
        return None;
    }
    if grouped {
        let mut groups = whole.split(',');
        let first = groups.next().unwrap_or_default();
        if first.is_empty() || first.len() > 3 || groups.any(|group| group.len() != 3) {
            return None;
        }
    }
    let spelled = (plain.len() > 1 && plain.starts_with('0')) || plain.len() > 15;
    let head = if spelled { digits(&plain) } else { cardinal(plain.parse().unwrap_or_default()) };
    match fraction {
        None => Some(head),
        Some(fraction) if all_digits(fraction) => {
            Some(format!("{head} point {}", digits(fraction)))
        }
        Some(_) => None,
    }
}

/// A number as it stands alone: years are read as such.
fn plain_number(text: &str) -> Option<String> {
    if text.len() == 4
        && let Ok(n @ 1100..=2099) = text.parse::<u64>()
    {
        return Some(year(n));
    }
    number(text)
}

/// (written, one, many)
const UNITS: &[(&str, &str, &str)] = &[
    ("km/h", "kilometer per hour", "kilometers per hour"),
    ("m/s", "meter per second", "meters per second"),
    ("mph", "mile per hour", "miles per hour"),
    ("km", "kilometer", "kilometers"),
    ("cm", "centimeter", "centimeters"),
    ("mm", "millimeter", "millimeters"),
    ("m", "meter", "meters"),
    ("kg", "kilogram", "kilograms"),
    ("mg", "milligram", "milligrams"),
    ("g", "gram", "grams"),
    ("ml", "milliliter", "milliliters"),
    ("L", "liter", "liters"),
    ("l", "liter", "liters"),
    ("GB", "gigabyte", "gigabytes"),
    ("MB", "megabyte", "megabytes"),
    ("KB", "kilobyte", "kilobytes"),
    ("kB", "kilobyte", "kilobytes"),
    ("TB", "terabyte", "terabytes"),
    ("ms", "millisecond", "milliseconds"),
    ("s", "second", "seconds"),
    ("sec", "second", "seconds"),
    ("min", "minute", "minutes"),
    ("mins", "minute", "minutes"),
    ("h", "hour", "hours"),
    ("hr", "hour", "hours"),
    ("hrs", "hour", "hours"),
    ("Hz", "hertz", "hertz"),
    ("kHz", "kilohertz", "kilohertz"),
    ("MHz", "megahertz", "megahertz"),
    ("GHz", "gigahertz", "gigahertz"),
    ("°C", "degree Celsius", "degrees Celsius"),
    ("°F", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "degree", "degrees"),
    ("ft", "foot", "feet"),
    ("lb", "pound", "pounds"),
    ("lbs", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("kW", "kilowatt", "kilowatts"),
    ("kWh", "kilowatt hour", "kilowatt hours"),
    ("W", "watt", "watts"),
    ("V", "volt", "volts"),
    ("fps", "frame per second", "frames per second"),
    ("px", "pixel", "pixels"),
    ("%", "percent", "percent"),
    ("‰", "per mille", "per mille"),
    ("k", "thousand", "thousand"),
    ("K", "thousand", "thousand"),
    ("x", "times", "times"),
    ("am", "AM", "AM"),
    ("pm", "PM", "PM"),
    ("AM", "AM", "AM"),
    ("PM", "PM", "PM"),
    ("a.m", "AM", "AM"),
    ("p.m", "PM", "PM"),
];

/// Units that are also words or letters, so only said as units when they touch their number.
const TOUCHING: &[&str] =
    &["m", "g", "s", "h", "l", "L", "k", "K", "x", "V", "W", "am", "min", "AM"];

fn unit(written: &str, one: bool) -> Option<&'static str> {
    UNITS
        .iter()
        .find(|(name, ..)| *name == written)
        .map(|(_, single, many)| if one { *single } else { *many })
}

/// (sign, one, many, hundredth, hundredths)
const MONEY: &[(char, &str, &str, &str, &str)] = &[
    ('$', "dollar", "dollars", "cent", "cents"),
    ('€', "euro", "euros", "cent", "cents"),
    ('£', "pound", "pounds", "penny", "pence"),
    ('¥', "yen", "yen", "sen", "sen"),
    ('₹', "rupee", "rupees", "paisa", "paise"),
    ('₩', "won", "won", "jeon", "jeon"),
];

fn money(sign: char, amount: &str, scale: Option<&str>) -> Option<String> {
    let (_, one, many, cent, cents) = MONEY.iter().find(|entry| entry.0 == sign)?;
    if let Some(scale) = scale {
        return Some(format!("{} {scale} {many}", number(amount)?));
    }
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let plain = whole.replace(',', "");
    let head = match plain.as_str() {
        "1" => format!("one {one}"),
        _ => format!("{} {many}", number(whole)?),
    };
    match (fraction.len(), fraction.parse::<u64>().ok()) {
        (0, _) => Some(head),
        (2, Some(0)) => Some(head),
        (2, Some(hundredths)) => {
            let small =
                format!("{} {}", cardinal(hundredths), if hundredths == 1 { cent } else { cents });
            Some(if plain == "0" { small } else { format!("{head} and {small}") })
        }
        _ => Some(format!("{} {many}", number(amount)?)),
    }
}

fn scale_word(text: &str) -> Option<&'static str> {
    match text {
        "k" | "K" | "thousand" => Some("thousand"),
        "M" | "mn" | "million" => Some("million"),
        "B" | "bn" | "billion" => Some("billion"),
        "T" | "trillion" => Some("trillion"),
        _ => None,
    }
}

fn clock(text: &str) -> Option<String> {
    let mut parts = text.split(':');
    let hour: u64 = parts.next()?.parse().ok()?;
    let minute = parts.next().filter(|part| part.len() == 2)?;
    let minute: u64 = minute.parse().ok()?;
    let second: Option<u64> = match parts.next() {
        Some(part) if part.len() == 2 => Some(part.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    if parts.next().is_some() || hour > 24 || minute > 59 {
        return None;
    }
    let mut said = match minute {
        0 if second.is_none() => return Some(format!("{} o'clock", cardinal(hour))),
        0..10 => format!("{} oh {}", cardinal(hour), cardinal(minute)),
        _ => format!("{} {}", cardinal(hour), cardinal(minute)),
    };
    if let Some(second) = second {
        said = format!("{said} and {} seconds", cardinal(second));
    }
    Some(said)
}

fn date(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let part = |text: &str| text.parse::<u64>().ok();
    let (y, m, d) = if first.len() == 4 && second.len() <= 2 && third.len() <= 2 {
        (part(first)?, part(second)?, part(third)?)
    } else if text.contains('/') && third.len() == 4 {
        (part(third)?, part(first)?, part(second)?)
    } else {
        return None;
    };
    if !(1..=12).contains(&m) || !(1..=31).contains(&d) {
        return None;
    }
    Some(format!("{} {} {}", pick(&MONTHS, m - 1), ordinal(d), year(y)))
}

fn fraction(text: &str) -> Option<String> {
    let (top, bottom) = text.split_once('/')?;
    let (over, under): (u64, u64) = (top.parse().ok()?, bottom.parse().ok()?);
    if (over, under) == (24, 7) {
        return Some("twenty four seven".into());
    }
    Some(match under {
        2 if over == 1 => "one half".into(),
        2 => format!("{} halves", cardinal(over)),
        4 if over == 1 => "one quarter".into(),
        4 => format!("{} quarters", cardinal(over)),
        3 | 5..=10 if over < under => {
            let part = ordinal(under);
            format!("{} {}", cardinal(over), if over == 1 { part } else { plural(&part) })
        }
        _ => format!("{} over {}", cardinal(over), cardinal(under)),
    })
}

/// Abbreviations that are written with a dot (here without the last one).
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("Dr", "doctor"),
    ("Mr", "mister"),
    ("Mrs", "missus"),
    ("Ms", "miz"),
    ("Prof", "professor"),
    ("St", "saint"),
    ("Jr", "junior"),
    ("Sr", "senior"),
    ("Gen", "general"),
    ("Capt", "captain"),
    ("Lt", "lieutenant"),
    ("Col", "colonel"),
    ("Sgt", "sergeant"),
    ("Gov", "governor"),
    ("Sen", "senator"),
    ("Rep", "representative"),
    ("Rev", "reverend"),
    ("vs", "versus"),
    ("etc", "et cetera"),
    ("e.g", "for example"),
    ("i.e", "that is"),
    ("cf", "compare"),
    ("approx", "approximately"),
    ("est", "estimated"),
    ("Fig", "figure"),
    ("fig", "figure"),
    ("Vol", "volume"),
    ("pp", "pages"),
    ("Inc", "incorporated"),
    ("Ltd", "limited"),
    ("Corp", "corporation"),
    ("Co", "company"),
    ("dept", "department"),
    ("Dept", "department"),
    ("Ave", "avenue"),
    ("Blvd", "boulevard"),
    ("Mt", "mount"),
    ("a.m", "AM"),
    ("p.m", "PM"),
    ("A.M", "AM"),
    ("P.M", "PM"),
    ("Ph.D", "P H D"),
    ("Jan", "January"),
    ("Feb", "February"),
    ("Mar", "March"),
    ("Apr", "April"),
    ("Aug", "August"),
    ("Sept", "September"),
    ("Sep", "September"),
    ("Oct", "October"),
    ("Nov", "November"),
    ("Dec", "December"),
];

/// Signs that are said when they stand between two words.
fn sign(text: &str) -> Option<&'static str> {
    Some(match text {
        "&" | "＆" => "and",
        "+" | "＋" => "plus",
        "=" => "equals",
        "@" => "at",
        "<" => "less than",
        ">" => "greater than",
        "*" | "×" => "times",
        "÷" => "divided by",
        "-" | "−" => "minus",
        "%" | "％" => "percent",
        "/" => "slash",
        "#" => "number",
        "°" => "degrees",
        _ => return None,
    })
}

/// The words and pauses of a text.
pub(super) fn say(spoken: &str) -> Vec<Said> {
    let tokens: Vec<(usize, &str)> = tokens(spoken);
    let mut out: Vec<Said> = Vec::new();
    let mut skip = false;
    for (index, &(at, token)) in tokens.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let next = tokens.get(index + 1).map(|(_, token)| *token);
        let open = |c: char| "\"'“‘(（「『《[{".contains(c);
        let close = |c: char| "\"'”’)）」』》]},.;:!?…。，、！？；：—–".contains(c);
        let bare = token.trim_start_matches(open);
        let at = at + (token.len() - bare.len());
        if token.starts_with(['(', '（']) {
            mark(&mut out, ',');
        }
        let core = bare.trim_end_matches(close);
        let tail = bare.get(core.len()..).unwrap_or_default();
        let dotted = tail.starts_with('.');
        let abbreviation = ABBREVIATIONS.iter().find(|(short, _)| dotted && *short == core);
        let text = match abbreviation {
            // "St." after a name is a street.
            Some(("St", _)) if next.is_none_or(|next| !starts_upper(next)) => "street".into(),
            Some((_, long)) => (*long).to_owned(),
            None => {
                let before = out.iter().rev().find_map(|said| match said {
                    Said::Word { text, .. } => Some(text.as_str()),
                    Said::Mark(_) => None,
                });
                let (text, used_next) = word(core, next.filter(|_| tail.is_empty()), before);
                skip = used_next.is_some();
                text
            }
        };
        if !text.is_empty() {
            out.push(Said::Word { at, text });
        }
        let tail = if skip {
            // The mark behind the unit that went with the number.
            let unit = next.unwrap_or_default();
            unit.get(unit.trim_end_matches(close).len()..).unwrap_or_default()
        } else {
            tail
        };
        // The dot of an abbreviation ends a sentence only at the end of the text.
        let last = index + 1 + usize::from(skip) >= tokens.len();
        let half = skip && next.is_some_and(|next| next.contains(".m"));
        let marks = if (abbreviation.is_some() || half || is_dotted_letters(core)) && !last {
            tail.strip_prefix('.').unwrap_or(tail)
        } else {
            tail
        };
        pauses(&mut out, marks);
    }
    out
}

/// White-space separated tokens with their offsets; long dashes and slashes between words split.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut begin: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() || c == '—' {
            let end = if c == '—' { at + c.len_utf8() } else { at };
            let from = begin.take().unwrap_or(at);
            out.extend(text.get(from..end).filter(|token| !token.is_empty()).map(|t| (from, t)));
        } else {
            begin.get_or_insert(at);
        }
    }
    if let Some(from) = begin {
        out.extend(text.get(from..).map(|token| (from, token)));
    }
    out
}

fn starts_upper(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
}

fn mark(out: &mut Vec<Said>, c: char) {
    if matches!(out.last(), Some(Said::Word { .. })) {
        out.push(Said::Mark(c));
    }
}

/// The strongest of the marks behind a word.
fn pauses(out: &mut Vec<Said>, marks: &str) {
    let strongest = marks
        .chars()
        .filter_map(|c| {
            Some(match c {
                '?' | '？' => (6, '?'),
                '!' | '！' => (5, '!'),
                '.' | '…' | '。' => (4, '.'),
                ';' | '；' => (3, ';'),
                ':' | '：' => (2, ':'),
                ',' | '，' | '、' | '—' | '–' | ')' | '）' => (1, ','),
                _ => return None,
            })
        })
        .max();
    if let Some((_, c)) = strongest {
        mark(out, c);
    }
}

/// How a bare token is said, and the next token when it belongs to it.
fn word<'a>(core: &str, next: Option<&'a str>, before: Option<&str>) -> (String, Option<&'a str>) {
    if let Some(said) = sign(core) {
        return (said.into(), None);
    }
    if core.chars().any(is_cjk) || !core.chars().any(|c| c.is_ascii_digit()) {
        return (letters(core), None);
    }
    let next_bare =
        next.map(|next| next.trim_end_matches([',', '.', ';', ':', '!', '?', ')', '"']));
    // Money.
    let mut chars = core.chars();
    let (negative, body) = match chars.next() {
        Some('-' | '−') => (true, chars.as_str()),
        Some('+') => (false, chars.as_str()),
        _ => (false, core),
    };
    let minus = |said: String| if negative { format!("minus {said}") } else { said };
    if let Some(symbol) = body.chars().next().filter(|c| MONEY.iter().any(|entry| entry.0 == *c)) {
        let amount = body.trim_start_matches(symbol);
        let figures = amount.trim_end_matches(|c: char| c.is_alphabetic());
        let suffix = amount.get(figures.len()..).unwrap_or_default();
        let (scale, used) = match (scale_word(suffix), next_bare.and_then(scale_word)) {
            (Some(scale), _) => (Some(scale), None),
            (None, Some(scale)) if suffix.is_empty() => (Some(scale), next),
            _ => (None, None),
        };
        if let Some(said) = money(symbol, figures, scale) {
            return (minus(said), used);
        }
    }
    if let Some(figures) = body.strip_prefix('#') {
        return (format!("number {}", number(figures).unwrap_or_else(|| letters(figures))), None);
    }
    if let Some(said) = clock(body) {
        // "10:00 am" is no o'clock.
        let half = next_bare.is_some_and(|n| {
            matches!(n.to_ascii_lowercase().as_str(), "am" | "pm" | "a.m" | "p.m")
        });
        let said = if half { said.replace(" o'clock", "") } else { said };
        return match next_bare.filter(|_| half).and_then(|n| unit(n, false)) {
            Some(name) => (format!("{said} {name}"), next),
            None => (said, None),
        };
    }
    if let Some(said) = date(body).or_else(|| fraction(body)) {
        return (said, None);
    }
    // Ordinals, decades, numbers with a unit that touches.
    let figures = body.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = body.get(figures.len()..).unwrap_or_default();
    if let Some(n) =
        figures.replace(',', "").parse::<u64>().ok().filter(|_| number(figures).is_some())
    {
        match suffix {
            "st" | "nd" | "rd" | "th" => return (ordinal(n), None),
            "s" | "'s" if n.is_multiple_of(10) && (figures.len() == 4 || figures.len() == 2) => {
                let said = if n >= 1000 { year(n) } else { cardinal(n) };
                return (plural(&said), None);
            }
            _ => {}
        }
        if suffix.is_empty()
            && (1..=31).contains(&n)
            && before.is_some_and(|before| MONTHS.contains(&before))
        {
            return (ordinal(n), None);
        }
    }
    if let Some(said) = number(figures) {
        let one = figures == "1";
        if suffix.is_empty() {
            if let Some(name) =
                next_bare.filter(|name| !TOUCHING.contains(name)).and_then(|name| unit(name, one))
            {
                return (minus(format!("{said} {name}")), next);
            }
            if figures.len() > 9 && !figures.contains([',', '.']) {
                return (digits(figures), None);
            }
            return (minus(plain_number(figures).unwrap_or(said)), None);
        }
        if let Some(name) = unit(suffix, one) {
            return (minus(format!("{said} {name}")), None);
        }
    }
    // Ranges and telephone numbers.
    let parts: Vec<&str> = core.split(['-', '–']).collect();
    if let [from, to] = parts.as_slice()
        && let (Some(a), Some(b)) = (plain_number(from), word_number(to))
    {
        let telephone = from.len() == 3 && to.len() == 4;
        let said = if telephone {
            format!("{} {}", digits(from), digits(to))
        } else {
            format!("{a} to {b}")
        };
        return (said, None);
    }
    // Versions and addresses: `v1.2.0`, `192.168.0.1`.
    let version = core.strip_prefix(['v', 'V']).unwrap_or(core);
    if version.split('.').all(|part| number(part).is_some()) {
        let said: Vec<String> = version.split('.').filter_map(number).collect();
        let head = if version.len() < core.len() { "version " } else { "" };
        return (head.to_owned() + &said.join(" point "), None);
    }
    (letters(core), None)
}

/// A number, perhaps with a unit that touches it.
fn word_number(text: &str) -> Option<String> {
    let figures = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = text.get(figures.len()..).unwrap_or_default();
    let said = plain_number(figures)?;
    if suffix.is_empty() { Some(said) } else { Some(format!("{said} {}", unit(suffix, false)?)) }
}

/// A token of letters, perhaps with digits and signs between them: `AT&T`, `GPT-4`, `a@b.com`.
fn letters(core: &str) -> String {
    let mut out = String::with_capacity(core.len());
    let mut run = String::new();
    let flush = |run: &mut String, out: &mut String| {
        if run.is_empty() {
            return;
        }
        let said = if run.chars().all(|c| c.is_ascii_digit() || c == '.') {
            number(run.trim_matches('.')).unwrap_or_else(|| digits(run))
        } else {
            std::mem::take(run)
        };
        run.clear();
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        out.push_str(&said);
    };
    let mut chars = core.chars().peekable();
    let mut last: Option<char> = None;
    let dotted_letters = is_dotted_letters(core);
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let between = |test: fn(&char) -> bool| {
            last.as_ref().is_some_and(test) && next.as_ref().is_some_and(test)
        };
        match c {
            '’' | '\'' if between(|c| c.is_alphabetic()) => run.push('\''),
            '.' if between(|c| c.is_ascii_digit()) => run.push('.'),
            '.' if dotted_letters => flush(&mut run, &mut out),
            '.' if between(|c| c.is_alphanumeric()) => {
                flush(&mut run, &mut out);
                out.push_str(" dot");
            }
            _ if c.is_alphanumeric()
                || !c.is_ascii() && !c.is_whitespace() && !"–—…“”".contains(c) =>
            {
                let digit = c.is_ascii_digit();
                if !run.is_empty() && last.is_some_and(|last| last.is_ascii_digit() != digit) {
                    flush(&mut run, &mut out);
                }
                run.push(c);
            }
            '&' | '@' | '+' | '=' | '%' | '$' if last.is_some() => {
                flush(&mut run, &mut out);
                // `C++` and `AT&T`.
                if let Some(said) = sign(c.encode_utf8(&mut [0; 4])) {
                    out.push(' ');
                    out.push_str(said);
                }
            }
            _ => flush(&mut run, &mut out),
        }
        last = Some(c);
    }
    flush(&mut run, &mut out);
    out
}

/// `U.S.A` or `p.m`: single letters with dots.
fn is_dotted_letters(core: &str) -> bool {
    core.contains('.') && core.split('.').all(|part| part.chars().count() <= 1)
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
