//! Lays the levels of settings over one another.
//!
//! Each level is read into *leaves* (a path of names and a value that is not a table). A leaf is
//! checked against the schema, which is the default settings themselves, so a setting needs no
//! second description. A setting must therefore have a default that TOML can hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::check;
use super::settings::{LlmProvider, Settings, SttProvider};
use super::{ConfigError, Loaded, Origin, Problem};

/// Stands in the schema for a name of the person's own.
const ANY: &str = "*";

/// What the layers are made of.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The settings file and its text.
    pub file: Option<(PathBuf, String)>,
    /// Environment variables; those that are not `ALICE_<SECTION>__<KEY>` are left alone.
    pub env: Vec<(String, String)>,
    /// `key=value` of the command line.
    pub sets: Vec<String>,
}

/// A path of names and the value there. The value is a table only when that table is empty.
type Leaf = (Vec<String>, Value);

/// Works the settings out. Depends on nothing but its argument.
///
/// # Errors
/// Every value that can't be used.
pub fn resolve(sources: &Sources) -> Result<Loaded, ConfigError> {
    let mut layers = Layers { schema: schema(), ..Layers::default() };
    if let Some((path, text)) = &sources.file {
        layers.add_file(path, text)?;
    }
    // Sorted, so that the result does not depend on the order in which a system keeps them.
    let mut env: Vec<_> = sources.env.iter().collect();
    env.sort();
    for (name, value) in env {
        layers.add_variable(name, value);
    }
    for set in &sources.sets {
        layers.add_flag(set);
    }
    layers.finish()
}

#[derive(Default)]
struct Layers {
    schema: Table,
    leaves: BTreeMap<Vec<String>, (Value, Origin)>,
    warnings: Vec<String>,
    /// Unknown groups of the settings file that were warned of.
    warned: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Layers {
    fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let at = |span: Option<std::ops::Range<usize>>| {
            let (line, column) = position(text, span.map_or(0, |span| span.start));
            Origin::File { path: path.to_owned(), line, column }
        };
        let malformed = |error: toml::de::Error| {
            let text = format!("malformed TOML: {}", error.message().replace('\n', ", "));
            ConfigError(vec![Problem { origin: at(error.span()), text }])
        };
        // Parsed twice: once for the values, once for where they stand.
        let values: Table = toml::from_str(text).map_err(malformed)?;
        let places = DeTable::parse(text).map_err(malformed)?;
        let mut found = Vec::new();
        walk(&mut Vec::new(), &values, Some(places.get_ref()), 0, &mut found);
        for (leaf, start) in found {
            self.add(leaf, &at(Some(start..start)));
        }
        Ok(())
    }

    fn add_variable(&mut self, name: &str, value: &str) {
        let Some(rest) = name.strip_prefix("ALICE_").filter(|rest| rest.contains("__")) else {
            return;
        };
        let path: Vec<_> = rest.split("__").map(str::to_ascii_lowercase).collect();
        self.add_text(path, value, &Origin::Env { name: name.into() });
    }

    fn add_flag(&mut self, set: &str) {
        let Some((key, value)) = set.split_once('=') else {
            let text = format!("`{set}` is not KEY=VALUE, such as voice.engine=kokoro");
            self.problems.push(Problem { origin: Origin::Flag, text });
            return;
        };
        match toml_edit::Key::parse(key) {
            Ok(keys) => {
                let path = keys.iter().map(|key| key.get().to_owned()).collect();
                self.add_text(path, value, &Origin::Flag);
            }
            Err(_) => {
                let text = format!("`{key}` is not a key; a key looks like voice.engine");
                self.problems.push(Problem { origin: Origin::Flag, text });
            }
        }
    }

    /// Takes a value that is written as text: as TOML where it is TOML of the right kind, else as
    /// the text itself; `a,b` is a list where a list is wanted.
    fn add_text(&mut self, path: Vec<String>, text: &str, origin: &Origin) {
        let parsed =
            toml::from_str::<Table>(&format!("v = {text}")).ok().and_then(|mut t| t.remove("v"));
        let literal = || Value::String(text.to_owned());
        let value = match (lookup(&self.schema, &path), parsed) {
            (Some(Value::String(_)), Some(Value::String(text))) => Value::String(text),
            (Some(Value::String(_)), _) => literal(),
            (Some(Value::Array(_)), parsed) if !matches!(parsed, Some(Value::Array(_))) => text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect::<Vec<_>>()
                .into(),
            (_, Some(value)) => value,
            (_, None) => literal(),
        };
        let mut found = Vec::new();
        let mut path = path;
        walk_value(&mut path, &value, None, 0, &mut found);
        for (leaf, _) in found {
            self.add(leaf, origin);
        }
    }

    /// Puts a leaf over what is there, if it is a setting and of the right kind.
    fn add(&mut self, (path, value): Leaf, origin: &Origin) {
        let key = key_text(&path);
        let Some(wanted) = lookup(&self.schema, &path) else {
            self.warn_unknown(&path, origin);
            return;
        };
        let problem = match (wanted, &value) {
            (Value::Table(_), Value::Table(_)) => None,
            (Value::Table(_), _) => {
                Some(format!("`{key}` is a group of settings and can't be {}", described(&value)))
            }
            _ if !same_kind(wanted, &value) => {
                Some(format!("`{key}` must be {}, but is {}", kind(wanted), described(&value)))
            }
            _ => refused_by_serde(&path, &value).map(|why| {
                // What serde says may quote the value.
                let why = if is_secret(&path) { "not a value that fits".into() } else { why };
                format!("`{key}`: {why}")
            }),
        };
        match problem {
            Some(text) => self.problems.push(Problem { origin: origin.clone(), text }),
            None => {
                self.leaves.insert(path, (value, origin.clone()));
            }
        }
    }

    fn warn_unknown(&mut self, path: &[String], origin: &Origin) {
        // The first name that is unknown says it; its inner names would only repeat it.
        let known = (0..path.len())
            .take_while(|n| lookup(&self.schema, path.get(..=*n).unwrap_or_default()).is_some())
            .count();
        let unknown = path.get(..=known).unwrap_or(path);
        let key = key_text(unknown);
        if matches!(origin, Origin::File { .. }) && !self.warned.insert(key.clone()) {
            return;
        }
        let hint = nearest(&self.schema, unknown)
            .map(|name| format!("; did you mean `{name}`?"))
            .unwrap_or_default();
        self.warnings.push(format!("{origin}: unknown setting `{key}` is ignored{hint}"));
    }

    fn finish(mut self) -> Result<Loaded, ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError(self.problems));
        }
        let mut table = Table::new();
        let mut origins = BTreeMap::new();
        for (path, (value, origin)) in std::mem::take(&mut self.leaves) {
            insert(&mut table, &path, value);
            origins.insert(key_text(&path), origin);
        }
        let settings: Settings = Value::Table(table).try_into().map_err(|error| {
            // Each leaf was tried alone, so this is not reached; it must not be a panic all the same.
            ConfigError(vec![Problem { origin: Origin::Default, text: format!("{error}") }])
        })?;
        let problems: Vec<_> = check::check(&settings)
            .into_iter()
            .map(|check::Finding { key, other, text }| {
                let origin = origins
                    .get(&key)
                    .or_else(|| origins.get(other?))
                    .cloned()
                    .unwrap_or(Origin::Default);
                Problem { origin, text: format!("`{key}` {text}") }
            })
            .collect();
        if problems.is_empty() {
            Ok(Loaded { settings, origins, warnings: self.warnings })
        } else {
            Err(ConfigError(problems))
        }
    }
}

/// The default settings, with one entry for any name in the maps that the person fills.
fn schema() -> Table {
    let mut settings = Settings::default();
    settings.llm.providers.insert(ANY.into(), LlmProvider::default());
    settings.stt.providers.insert(ANY.into(), SttProvider::default());
    Table::try_from(settings).unwrap_or_default()
}

fn lookup<'a>(schema: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (last, groups) = path.split_last()?;
    let mut table = schema;
    for name in groups {
        table = table.get(name).or_else(|| table.get(ANY))?.as_table()?;
    }
    table.get(last).or_else(|| table.get(ANY))
}

/// Collects the leaves of a table with the byte where each stands in its text.
fn walk(
    path: &mut Vec<String>,
    table: &Table,
    places: Option<&DeTable<'_>>,
    start: usize,
    found: &mut Vec<(Leaf, usize)>,
) {
    for (name, value) in table {
        let place =
            places.and_then(|places| places.iter().find(|(key, _)| key.get_ref().as_ref() == name));
        let start = place.map_or(start, |(key, value)| match value.get_ref() {
            DeValue::Table(_) => key.span().start,
            _ => value.span().start,
        });
        path.push(name.clone());
        walk_value(path, value, place.map(|(_, value)| value.get_ref()), start, found);
        path.pop();
    }
}

fn walk_value(
    path: &mut Vec<String>,
    value: &Value,
    place: Option<&DeValue<'_>>,
    start: usize,
    found: &mut Vec<(Leaf, usize)>,
) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            walk(path, table, place.and_then(DeValue::as_table), start, found);
        }
        _ => found.push(((path.clone(), value.clone()), start)),
    }
}

/// Line and column, from 1, of a byte in a text.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn same_kind(wanted: &Value, value: &Value) -> bool {
    wanted.same_type(value) || (wanted.is_float() && value.is_integer())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text in quotes",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "`true` or `false`",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list in [ ]",
        Value::Table(_) => "a table",
    }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        other => kind(other),
    }
}

/// What serde says of this one leaf over the defaults, when it does not take it.
fn refused_by_serde(path: &[String], value: &Value) -> Option<String> {
    let mut table = Table::new();
    insert(&mut table, path, value.clone());
    let error = Value::Table(table).try_into::<Settings>().err()?;
    Some(error.message().lines().next().unwrap_or_default().to_owned())
}

/// Puts a value at a path, making the tables on the way. A table that is there is kept.
fn insert(table: &mut Table, path: &[String], value: Value) {
    let Some((last, groups)) = path.split_last() else { return };
    let mut table = table;
    for name in groups {
        let inner = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = inner else { return };
        table = inner;
    }
    if value.is_table() {
        table.entry(last.clone()).or_insert(value);
    } else {
        table.insert(last.clone(), value);
    }
}

/// The known name that is most like an unknown one: of the same last name elsewhere, else by letters.
fn nearest(schema: &Table, path: &[String]) -> Option<String> {
    let wrong = key_text(path);
    let last = path.last()?;
    let mut known = Vec::new();
    names(schema, &mut Vec::new(), &mut known);
    let likeness = |name: &Vec<String>| {
        // A name of the person's own is as they wrote it.
        let name: Vec<_> = name
            .iter()
            .enumerate()
            .map(|(n, part)| match path.get(n) {
                Some(own) if part == ANY => own.clone(),
                _ => part.clone(),
            })
            .collect();
        let whole = strsim::normalized_damerau_levenshtein(&key_text(&name), &wrong);
        let moved = f64::from(u8::from(name.last() == Some(last))) * 0.9;
        (whole.max(moved), key_text(&name))
    };
    known
        .iter()
        .map(likeness)
        .filter(|(like, name)| *like >= 0.6 && !name.contains(ANY))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn names(table: &Table, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (name, value) in table {
        path.push(name.clone());
        found.push(path.clone());
        if let Value::Table(inner) = value {
            names(inner, path, found);
        }
        path.pop();
    }
}

/// The leaves of settings, sorted. Numbers of single precision are written as short as they are.
pub(super) fn flatten(settings: &Settings) -> Vec<Leaf> {
    let table = Table::try_from(settings).unwrap_or_default();
    let mut found = Vec::new();
    walk(&mut Vec::new(), &table, None, 0, &mut found);
    found
        .into_iter()
        .map(|((path, value), _)| (path, shortened(value)))
        .filter(|(_, value)| !value.is_table())
        .collect()
}

fn shortened(value: Value) -> Value {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "only tries whether it came from f32")]
        Value::Float(number) if f64::from(number as f32).to_bits() == number.to_bits() => {
            Value::Float((number as f32).to_string().parse().unwrap_or(number))
        }
        other => other,
    }
}

/// A path as it is written in TOML, with quotes where a name needs them.
pub(super) fn key_text(path: &[String]) -> String {
    let bare = |name: &String| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    path.iter()
        .map(|name| if bare(name) || name == ANY { name.clone() } else { format!("{name:?}") })
        .collect::<Vec<_>>()
        .join(".")
}

/// Whether the value there must never be shown.
pub(super) fn is_secret(path: &[String]) -> bool {
    path.last().is_some_and(|name| {
        ["key", "token", "secret", "password"].iter().any(|end| name.ends_with(end))
    })
}
