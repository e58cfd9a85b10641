//! Figures in Chinese text as they are read.

const DIGITS: [char; 10] = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];

/// Measures before which two is 两.
const MEASURES: &str =
    "个次天位只本条张块种岁名件杯家点倍周米斤公里小台辆棵颗间层双对份句首部支片扇座头匹艘";

/// Latin units behind a figure, longer ones first, and how they are said.
const UNITS: &[(&str, &str)] = &[
    ("km/h", "公里每小时"),
    ("km²", "平方公里"),
    ("kWh", "千瓦时"),
    ("m/s", "米每秒"),
    ("m²", "平方米"),
    ("m³", "立方米"),
    ("°C", "摄氏度"),
    ("°F", "华氏度"),
    ("Hz", "赫兹"),
    ("km", "公里"),
    ("cm", "厘米"),
    ("mm", "毫米"),
    ("kg", "公斤"),
    ("mg", "毫克"),
    ("ml", "毫升"),
    ("mL", "毫升"),
    ("ms", "毫秒"),
    ("℃", "摄氏度"),
    ("℉", "华氏度"),
    ("°", "度"),
    ("m", "米"),
    ("g", "克"),
    ("L", "升"),
    ("W", "瓦"),
    ("V", "伏"),
];

fn digit(c: char) -> Option<char> {
    let value = usize::try_from(c.to_digit(10)?).ok()?;
    DIGITS.get(value).copied()
}

fn digits(text: &str) -> String {
    text.chars().filter_map(digit).collect()
}

/// A whole number in words, up to 9999 of 亿.
fn whole(n: u64) -> String {
    fn small(n: u64, out: &mut String) {
        let mut zero = false;
        let mut left = n;
        for (size, name) in [(1000, "千"), (100, "百"), (10, "十"), (1, "")] {
            let value = left / size;
            left %= size;
            if value == 0 {
                zero |= !out.is_empty();
                continue;
            }
            if zero {
                out.push('零');
                zero = false;
            }
            if value == 2 && size == 1000 {
                out.push('两');
            } else {
                out.extend(usize::try_from(value).ok().and_then(|value| DIGITS.get(value)));
            }
            out.push_str(name);
        }
    }
    if n == 0 {
        return "零".into();
    }
    let mut out = String::new();
    let mut left = n;
    for (size, name) in [(100_000_000, "亿"), (10_000, "万"), (1, "")] {
        let value = left / size;
        left %= size;
        if value == 0 {
            continue;
        }
        if !out.is_empty() && value < 1000 {
            out.push('零');
        }
        let mut part = String::new();
        small(value, &mut part);
        out.push_str(if value == 2 && size > 1 { "两" } else { &part });
        out.push_str(name);
    }
    match out.strip_prefix("一十") {
        // 十二万, but 一百一十二 within.
        Some(rest) => format!("十{rest}"),
        None => out,
    }
}

/// A plain or decimal number, thousands separators allowed.
fn number(text: &str) -> Option<String> {
    let plain = text.replace([',', '，'], "");
    let (head, fraction) = match plain.split_once('.') {
        Some((head, fraction)) => (head, Some(fraction)),
        None => (plain.as_str(), None),
    };
    // Codes, and what begins with 0.
    let head = if head.len() > 12 || (head.len() > 1 && head.starts_with('0')) {
        digits(head)
    } else {
        whole(head.parse().ok()?)
    };
    Some(match fraction {
        Some(fraction) => format!("{head}点{}", digits(fraction)),
        None => head,
    })
}

/// Digits of a telephone number: one is 幺.
fn telephone(text: &str) -> String {
    digits(text).replace('一', "幺")
}

/// The figures at the beginning of a text: how many bytes they take and how they are read; `None`
/// when it does not begin with figures. `before` is the character in front of it.
pub(super) fn read(text: &str, before: Option<char>) -> Option<(usize, String)> {
    let first = text.chars().next()?;
    let behind = text.get(first.len_utf8()..).unwrap_or_default();
    match first {
        '0'..='9' => plain(text, before),
        '-' | '−' | '+' if before.is_none_or(|c| !c.is_ascii_alphanumeric()) => {
            let (length, said) = plain(behind, None)?;
            let sign = if first == '+' { "正" } else { "负" };
            // Of a telephone number, +86.
            let sign = if first == '+' && said.contains('幺') { "" } else { sign };
            Some((first.len_utf8() + length, format!("{sign}{said}")))
        }
        '￥' | '¥' | '$' | '€' | '£' => {
            let (length, written) = figures(behind)?;
            let coin = match first {
                '$' => "美元",
                '€' => "欧元",
                '£' => "英镑",
                _ => "元",
            };
            // ¥3万 is 三万元.
            let size = behind
                .get(length..)
                .and_then(|rest| rest.chars().next())
                .filter(|c| matches!(c, '万' | '亿'));
            let mut said = number(written)?;
            said.extend(size);
            let length = first.len_utf8() + length + size.map_or(0, char::len_utf8);
            Some((length, said + coin))
        }
        _ => None,
    }
}

/// Figures without a sign in front of them.
fn plain(text: &str, before: Option<char>) -> Option<(usize, String)> {
    if let Some(found) = date(text).or_else(|| call(text)).or_else(|| version(text)) {
        return Some(found);
    }
    let (length, said) = figures(text)?;
    let rest = text.get(length..).unwrap_or_default();
    let next = rest.chars().next();
    let second = next.and_then(|c| figures(rest.get(c.len_utf8()..)?));
    if let (Some(sign), Some((other, written))) = (next, second) {
        let all = length + sign.len_utf8() + other;
        let whole_numbers = !said.contains(['.', ',']) && !written.contains(['.', ',']);
        let after = text.get(all..).and_then(|rest| rest.chars().next());
        match sign {
            ':' | '：' if whole_numbers => return Some(clock(text, said, written, all)),
            '/' if whole_numbers && after != Some('/') => {
                return Some((all, format!("{}分之{}", number(written)?, number(said)?)));
            }
            '-' | '–' | '~' | '～' | '—' => {
                // Both ends of a range of years are read digit by digit.
                let end = text.get(length + sign.len_utf8()..)?;
                let (other, end) = plain(end, None)?;
                let years = after == Some('年') && said.len() == 4;
                let begin = if years { digits(said) } else { number(said)? };
                return Some((length + sign.len_utf8() + other, format!("{begin}到{end}")));
            }
            _ => {}
        }
    }
    if let Some(percent) = next.filter(|c| matches!(c, '%' | '％')) {
        return Some((length + percent.len_utf8(), format!("百分之{}", number(said)?)));
    }
    if said.len() == 4 && next == Some('年') || said.len() == 2 && matches!(next, Some('年' | '后'))
    {
        return Some((length, digits(said)));
    }
    let two = said == "2" && before != Some('第');
    let spaced = rest.trim_start_matches(' ');
    if let Some((unit, name)) = UNITS.iter().find(|(unit, _)| {
        spaced.strip_prefix(unit).is_some_and(|after| {
            !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '/')
        })
    }) {
        let amount = if two { "两".into() } else { number(said)? };
        let taken = length + (rest.len() - spaced.len()) + unit.len();
        return Some((taken, amount + name));
    }
    if two && next.is_some_and(|c| MEASURES.contains(c)) {
        return Some((length, "两".into()));
    }
    Some((length, number(said)?))
}

/// 10:30 and 10:30:05; else a score or a ratio. `all` is the length of both numbers.
fn clock(text: &str, first: &str, second: &str, all: usize) -> (usize, String) {
    let value = |text: &str, most: u64| text.parse().ok().filter(|value: &u64| *value <= most);
    let two_digits = |value: u64| match value {
        1..=9 => format!("零{}", whole(value)),
        _ => whole(value),
    };
    if second.len() == 2
        && let (Some(hour), Some(minute)) = (value(first, 24), value(second, 59))
    {
        let hour = if hour == 2 { "两".into() } else { whole(hour) };
        let seconds = text.get(all..).and_then(|rest| {
            let rest = rest.strip_prefix(':')?;
            let (length, written) = figures(rest).filter(|(length, _)| *length == 2)?;
            Some((length + 1, value(written, 59)?))
        });
        return match (minute, seconds) {
            (_, Some((more, second))) => {
                let minute = two_digits(minute);
                (all + more, format!("{hour}点{minute}分{}秒", two_digits(second)))
            }
            (0, None) => (all, format!("{hour}点")),
            (_, None) => (all, format!("{hour}点{}分", two_digits(minute))),
        };
    }
    let say = |text: &str| number(text).unwrap_or_else(|| digits(text));
    (all, format!("{}比{}", say(first), say(second)))
}

/// 2026-12-01 and 2026/12/1.
fn date(text: &str) -> Option<(usize, String)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '-' || c == '/')).unwrap_or(text.len());
    let written = text.get(..end)?;
    let separator = if written.contains('-') { '-' } else { '/' };
    let parts: Vec<&str> = written.split(separator).collect();
    let [year, month, day] = parts.as_slice() else { return None };
    let (m, d): (u64, u64) = (month.parse().ok()?, day.parse().ok()?);
    (year.len() == 4 && (1..=12).contains(&m) && (1..=31).contains(&d))
        .then(|| (written.len(), format!("{}年{}月{}日", digits(year), whole(m), whole(d))))
}

/// A telephone number: eleven digits from 1 on, groups joined by `-`, an area code.
fn call(text: &str) -> Option<(usize, String)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(text.len());
    let written = text.get(..end)?.trim_end_matches('-');
    let groups: Vec<&str> = written.split('-').collect();
    let count = written.chars().filter(char::is_ascii_digit).count();
    let mobile = groups.len() == 1 && count == 11 && written.starts_with('1');
    let area = groups.len() == 1 && (3..=12).contains(&count) && written.starts_with('0');
    let grouped = groups.len() > 1 && count >= 7 && groups.iter().all(|group| group.len() > 1);
    let pointed = text.get(end..).is_some_and(|rest| rest.starts_with('.'));
    let years = groups.len() == 2 && groups.iter().all(|group| group.len() == 4);
    ((mobile || area || grouped && !years) && !pointed).then(|| (written.len(), telephone(written)))
}

/// 2.0.1: part by part.
fn version(text: &str) -> Option<(usize, String)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let written = text.get(..end)?.trim_end_matches('.');
    let parts: Option<Vec<String>> =
        written.split('.').map(|part| part.parse().ok().map(whole)).collect();
    let parts = parts.filter(|parts| parts.len() > 2)?;
    Some((written.len(), parts.join("点")))
}

/// Digits with separators inside; length in bytes and the text.
fn figures(text: &str) -> Option<(usize, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let written = text.get(..end)?.trim_end_matches(['.', ',']);
    let grouped = written
        .split(',')
        .skip(1)
        .all(|group| group.split('.').next().is_some_and(|whole| whole.len() == 3));
    let written = if grouped { written } else { written.split(',').next()? };
    let dots = written.matches('.').count();
    let written = if dots > 1 { written.split('.').next()? } else { written };
    (!written.is_empty() && written.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((written.len(), written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_people_read_them() {
        for (text, want, left) in [
            ("0", "零", ""),
            ("10个", "十", "个"),
            ("15", "十五", ""),
            ("20", "二十", ""),
            ("105", "一百零五", ""),
            ("110", "一百一十", ""),
            ("123", "一百二十三", ""),
            ("1,050", "一千零五十", ""),
            ("10010", "一万零一十", ""),
            ("120000", "十二万", ""),
            ("100000001", "一亿零一", ""),
            ("2000", "两千", ""),
            ("22000", "两万两千", ""),
            ("20000", "两万", ""),
            ("2个", "两", "个"),
            ("2月", "二", "月"),
            ("3.14", "三点一四", ""),
            ("3.14。", "三点一四", "。"),
            ("2026年", "二零二六", "年"),
            ("90后", "九零", "后"),
            ("2026-12-01，", "二零二六年十二月一日", "，"),
            ("2026/1/31。", "二零二六年一月三十一日", "。"),
            ("2026-12-01", "二零二六年十二月一日", ""),
            ("2020-2025年", "二零二零到二零二五", "年"),
            ("3-5天", "三到五", "天"),
            ("10~20%", "十到百分之二十", ""),
            ("10:30", "十点三十分", ""),
            ("2：05", "两点零五分", ""),
            ("8:00", "八点", ""),
            ("08:05:09", "八点零五分零九秒", ""),
            ("3:2，", "三比二", "，"),
            ("3/4的", "四分之三", "的"),
            ("50%", "百分之五十", ""),
            ("0.5%", "百分之零点五", ""),
            ("-5", "负五", ""),
            ("-5°C", "负五摄氏度", ""),
            ("25℃。", "二十五摄氏度", "。"),
            ("2 km，", "两公里", "，"),
            ("100km/h", "一百公里每小时", ""),
            ("60kg。", "六十公斤", "。"),
            ("5G手机", "五", "G手机"),
            ("16GB", "十六", "GB"),
            ("$5", "五美元", ""),
            ("￥3.5", "三点五元", ""),
            ("¥3万", "三万元", ""),
            ("13812345678", "幺三八幺二三四五六七八", ""),
            ("010-62345678", "零幺零六二三四五六七八", ""),
            ("2.0.1版", "二点零点一", "版"),
            ("3.", "三", "."),
        ] {
            let (length, said) = read(text, None).unwrap();
            assert_eq!((said.as_str(), &text[length..]), (want, left), "{text}");
        }
        assert_eq!(read("2个", Some('第')).unwrap().1, "二");
        for text in ["", "a1", "你", "-", "$a", "."] {
            assert_eq!(read(text, None), None, "{text}");
        }
    }
}
