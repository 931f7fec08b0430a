//! Configuration in layers: defaults, a YAML file, environment variables `TIDEMILL_*`, flags; later ones win. Keys are
//! flat and kebab-case (`data-dir`, `TIDEMILL_DATA_DIR`, `--data-dir`). An unknown key is an error.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Largest configuration file, bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Default,
    /// The file.
    File(String),
    /// This variable.
    Env(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(p) => write!(f, "file {p}"),
            Self::Env(v) => write!(f, "environment {v}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A key that nobody knows.
    #[error("unknown configuration key {key:?} ({source_name}); known keys: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands.
        source_name: String,
        /// What is allowed.
        known: String,
    },
    /// The file cannot be read or parsed.
    #[error("configuration file {path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// A value does not fit its key.
    #[error("configuration key {key:?} ({source_name}): {why}")]
    Value {
        /// The key.
        key: String,
        /// Where it stands.
        source_name: String,
        /// Why.
        why: String,
    },
}

/// Values by key with the source of each.
#[derive(Clone, Debug)]
pub struct Layers {
    values: BTreeMap<String, (Value, Source)>,
}

impl Layers {
    /// Starts from a struct of defaults; its serialised fields are the known keys.
    ///
    /// # Errors
    /// The struct does not serialise to a map.
    pub fn new<T: Serialize>(defaults: &T) -> Result<Self, ConfigError> {
        match serde_json::to_value(defaults) {
            Ok(Value::Object(map)) => {
                Ok(Self { values: map.into_iter().map(|(k, v)| (k, (v, Source::Default))).collect() })
            }
            Ok(_) => Err(value_error("", &Source::Default, "defaults are not a map")),
            Err(e) => Err(value_error("", &Source::Default, &e.to_string())),
        }
    }

    /// Adds a YAML file.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file and the key.
    pub fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let shown = path.display().to_string();
        let fail = |why: String| ConfigError::File { path: shown.clone(), why };
        let len = std::fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
        if len > MAX_FILE {
            return Err(fail(format!("{len} bytes, at most {MAX_FILE} allowed")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        let map: BTreeMap<String, Value> = serde_saphyr::from_str(&text).map_err(|e| fail(e.to_string()))?;
        for (key, value) in map {
            self.set(&key, value, Source::File(shown.clone()))?;
        }
        Ok(())
    }

    /// Adds variables that begin with `TIDEMILL_`; `ignore` names variables that mean something else.
    ///
    /// # Errors
    /// [`ConfigError`] naming the variable.
    pub fn env<I>(&mut self, vars: I, ignore: &[&str]) -> Result<(), ConfigError>
    where
        I: IntoIterator<Item = (String, String)>,
    {
        for (name, text) in vars {
            let Some(rest) = name.strip_prefix("TIDEMILL_") else { continue };
            if ignore.contains(&name.as_str()) {
                continue;
            }
            let key = rest.to_ascii_lowercase().replace('_', "-");
            self.set_text(&key, &text, Source::Env(name.clone()))?;
        }
        Ok(())
    }

    /// Adds a flag that was given.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn flag(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        self.set_text(key, text, Source::Flag)
    }

    /// Text takes the type of the default: a number where the default is one, a list (comma-separated) where it is one.
    fn set_text(&mut self, key: &str, text: &str, source: Source) -> Result<(), ConfigError> {
        let parse_error = |why: String| value_error(key, &source, &why);
        let value = match self.values.get(key).map(|(v, _)| v) {
            Some(Value::Number(_)) => serde_json::from_str::<serde_json::Number>(text.trim())
                .map(Value::Number)
                .map_err(|_| parse_error(format!("{text:?} is not a number")))?,
            Some(Value::Bool(_)) => match text.trim() {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                _ => return Err(parse_error(format!("{text:?} is not true or false"))),
            },
            Some(Value::Array(_)) => text
                .split(',')
                .map(str::trim)
                .filter(|s| !s.is_empty())
                .map(|s| Value::String(s.to_owned()))
                .collect(),
            _ => Value::String(text.to_owned()),
        };
        self.set(key, value, source)
    }

    fn set(&mut self, key: &str, value: Value, source: Source) -> Result<(), ConfigError> {
        match self.values.get_mut(key) {
            Some(slot) => {
                *slot = (value, source);
                Ok(())
            }
            None => Err(ConfigError::UnknownKey {
                key: key.to_owned(),
                source_name: source.to_string(),
                known: self.values.keys().cloned().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The typed configuration.
    ///
    /// # Errors
    /// A value of the wrong type, with the key that holds it.
    pub fn build<T: DeserializeOwned + Serialize>(&self) -> Result<T, ConfigError> {
        let map = self.values.iter().map(|(k, (v, _))| (k.clone(), v.clone())).collect();
        serde_json::from_value(Value::Object(map)).map_err(|e| self.blame::<T>(&e.to_string()))
    }

    /// Finds the key whose value does not fit: the first that fits when put back to its default cannot be it, so each
    /// non-default value is tried alone.
    fn blame<T: DeserializeOwned + Serialize>(&self, why: &str) -> ConfigError {
        let all: serde_json::Map<String, Value> =
            self.values.iter().map(|(k, (v, _))| (k.clone(), v.clone())).collect();
        for (key, (_, source)) in self.values.iter().filter(|(_, (_, s))| *s != Source::Default) {
            let mut without = all.clone();
            without.remove(key);
            let alone = serde_json::from_value::<T>(Value::Object(without));
            let says_missing = alone.as_ref().err().is_none_or(|e| e.to_string().contains(key.as_str()));
            if says_missing {
                return value_error(key, source, why);
            }
        }
        value_error("", &Source::Default, why)
    }

    /// Lines `key: value  # source`, in order of key.
    #[must_use]
    pub fn print(&self) -> String {
        self.values.iter().map(|(k, (v, s))| format!("{k}: {v}  # {s}\n")).collect()
    }
}

fn value_error(key: &str, source: &Source, why: &str) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), source_name: source.to_string(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Conf {
        data_dir: String,
        copies: u32,
        meta: Vec<String>,
    }

    fn base() -> Layers {
        Layers::new(&Conf { data_dir: "d".into(), copies: 3, meta: vec![] }).unwrap()
    }

    #[test]
    fn later_layers_win_and_tell_their_source() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.yaml");
        std::fs::write(&file, "data-dir: /file\ncopies: 2\n").unwrap();
        let mut l = base();
        l.file(&file).unwrap();
        let vars =
            [("TIDEMILL_META".to_owned(), "a:1, b:2".to_owned()), ("TIDEMILL_SERVER".into(), "x".into())];
        l.env(vars, &["TIDEMILL_SERVER"]).unwrap();
        l.flag("data-dir", "/flag").unwrap();
        let want = Conf { data_dir: "/flag".into(), copies: 2, meta: vec!["a:1".into(), "b:2".into()] };
        assert_eq!(l.build::<Conf>().unwrap(), want);
        let shown = l.print();
        assert!(shown.contains("data-dir: \"/flag\"  # flag"), "{shown}");
        assert!(shown.contains("# environment TIDEMILL_META"), "{shown}");
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_named() {
        let mut l = base();
        let e = l.flag("dat-dir", "x").unwrap_err().to_string();
        assert!(e.contains("dat-dir") && e.contains("data-dir"), "{e}");
        let e = l.flag("copies", "many").unwrap_err().to_string();
        assert!(e.contains("copies") && e.contains("not a number"), "{e}");
        l.flag("copies", "-1").unwrap();
        let e = l.build::<Conf>().unwrap_err().to_string();
        assert!(e.contains("copies"), "{e}");
    }
}
