//! What the machine has: devices, libraries, weights, keys, the port, space.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use cpal::traits::{DeviceTrait, HostTrait};
use indicatif::HumanBytes;

use super::{Check, State};
use crate::cli::Context;
use crate::config::{Home, Settings};
use crate::kernel::sound_system::sound_host;
use crate::lock::Lock;
use crate::models::{self, Manifest};
use crate::{llm, onnx};

/// Below this much room Alice can't fetch or write what she needs.
const LITTLE_ROOM: u64 = 1 << 30;

pub(super) fn settings(context: &Context) -> Vec<Check> {
    let file = context.home.config_file();
    match &context.refused {
        Some(error) => error
            .0
            .iter()
            .map(|problem| {
                let advice = "mend it; the checks below are made with the default settings";
                Check::new("settings", "", State::Broken, problem.to_string(), advice)
            })
            .collect(),
        None => {
            let text = if file.is_file() {
                format!("{} is sound", file.display())
            } else {
                format!("defaults; {} is not there", file.display())
            };
            vec![Check::good("settings", "", text)]
        }
    }
}

pub(super) fn audio(settings: &Settings) -> Vec<Check> {
    let host = sound_host();
    let names = |devices: Vec<cpal::Device>| -> Vec<String> {
        devices.iter().map(ToString::to_string).collect()
    };
    let inputs = names(host.input_devices().map(Iterator::collect).unwrap_or_default());
    let outputs = names(host.output_devices().map(Iterator::collect).unwrap_or_default());
    // Some systems list plug-ins as devices, so the default one has to tell its format.
    let input = host.default_input_device().filter(|d| d.default_input_config().is_ok());
    let output = host.default_output_device().filter(|d| d.default_output_config().is_ok());
    let name = |device: Option<cpal::Device>| device.map(|device| device.to_string());
    let ears = &settings.ears;
    let voice = &settings.voice;
    let speaks = voice.enabled && voice.device != "none";
    vec![
        device("microphone", &ears.device, ears.enabled, name(input), &inputs),
        device("speaker", &voice.device, speaks, name(output), &outputs),
    ]
}

fn device(
    what: &str,
    wanted: &str,
    used: bool,
    default: Option<String>,
    there: &[String],
) -> Check {
    if !used {
        return Check::good("audio", what, "turned off in the settings");
    }
    if wanted == "default" {
        return match default {
            Some(name) => Check::good("audio", what, name),
            None => {
                let advice = "plug one in, or talk by `alice chat` or the page";
                let text = "there is none that works";
                Check::new("audio", what, State::Missing, text, advice)
            }
        };
    }
    if there.iter().any(|name| name.contains(wanted)) {
        return Check::good("audio", what, wanted);
    }
    let text = format!("`{wanted}` is not there; there are: {}", there.join(", "));
    let advice = "the default one is used until it comes back, or set one of these names";
    Check::new("audio", what, State::Missing, text, advice)
}

pub(super) fn libraries(home: &Home) -> Vec<Check> {
    let runtime = match onnx::load(home) {
        Ok(path) => Check::good("library", "ONNX Runtime", path.display().to_string()),
        Err(error) => {
            let advice = "without it Alice neither hears nor speaks";
            Check::new("library", "ONNX Runtime", State::Broken, format!("{error:#}"), advice)
        }
    };
    let espeak = match Command::new("espeak-ng").arg("--version").output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let first = text.lines().next().unwrap_or_default().trim();
            let short = first.split("  ").next().unwrap_or(first);
            Check::good("library", "espeak-ng", short)
        }
        _ => {
            let advice = "on Debian: apt-get install espeak-ng; Piper needs it";
            Check::new("library", "espeak-ng", State::Missing, "not installed", advice)
        }
    };
    vec![runtime, espeak]
}

pub(super) fn weights(context: &Context) -> Vec<Check> {
    let manifest = match Manifest::embedded() {
        Ok(manifest) => manifest,
        Err(error) => {
            return vec![Check::new("weights", "", State::Broken, format!("{error:#}"), "")];
        }
    };
    let settings = &context.settings;
    let needed = |name: &str| match name {
        "silero-vad" | "onnxruntime" => settings.ears.enabled,
        "smart-turn" => settings.ears.enabled && settings.ears.smart_turn,
        "moonshine-tiny" => settings.stt.engines.iter().any(|engine| engine == "moonshine"),
        "piper-joe" => settings.voice.engine == "piper",
        "kokoro" => settings.voice.engine == "kokoro",
        other => other == settings.llm.embedded_model && settings.llm.model == "embedded",
    };
    manifest
        .models
        .iter()
        .map(|model| {
            let folder = context.home.models().join(&model.name);
            let states: Vec<_> =
                model.files_here().map(|file| models::state(&folder, file)).collect();
            let bad = states
                .iter()
                .filter(|s| !matches!(s, models::State::Ready | models::State::Unchecked))
                .count();
            if model.unsupported().is_none() && bad == 0 {
                let checked = states.iter().all(|state| *state == models::State::Ready);
                let text = if checked { "here" } else { "here, hash not checked yet" };
                return Check::good("weights", &model.name, text);
            }
            let state = if needed(&model.name) { State::Broken } else { State::Missing };
            let text = format!("{bad} of {} files are not here or damaged", states.len());
            let advice = model
                .unsupported()
                .unwrap_or_else(|| format!("alice models pull {} ({})", model.name, model.role));
            Check::new("weights", &model.name, state, text, advice)
        })
        .collect()
}

/// Names of keys only, never what is in them.
pub(super) fn keys(settings: &Settings) -> Vec<Check> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let found: Vec<_> = llm::providers::all(&settings.llm, &env)
        .into_iter()
        .filter(|provider| provider.key.is_some())
        .map(|provider| {
            let from = if provider.key_env.is_empty() || env(&provider.key_env).is_none() {
                "settings".to_owned()
            } else {
                provider.key_env
            };
            format!("{} ({from})", provider.name)
        })
        .collect();
    let text = if found.is_empty() {
        "none; the embedded model or a local server answers".to_owned()
    } else {
        found.join(", ")
    };
    vec![Check::good("keys", "", text)]
}

pub(super) fn server(context: &Context) -> Vec<Check> {
    let holder = Lock::holder(&context.home);
    let mut checks = Vec::new();
    match &holder {
        Some(holder) => {
            let at = holder.address.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            let text = format!("Alice runs on it: process {}{at}", holder.pid);
            checks.push(Check::good("home", "lock", text));
        }
        None => {
            let text = format!("{} is free", context.home.root().display());
            checks.push(Check::good("home", "lock", text));
        }
    }
    let Ok(address) = context.settings.server.listen.parse::<SocketAddr>() else { return checks };
    let what = format!("port {}", address.port());
    checks.push(match TcpListener::bind(address) {
        Ok(_) => Check::good("server", what, "free"),
        Err(_) if holder.is_some() => Check::good("server", what, "in use while Alice runs"),
        Err(error) => {
            let who = port_holder(address.port())
                .map(|who| format!(", held by {who}"))
                .unwrap_or_default();
            let advice = "stop it, or set another address: server.listen = \"127.0.0.1:7879\"";
            Check::new("server", what, State::Broken, format!("{error}{who}"), advice)
        }
    });
    checks
}

/// The process that listens on a port, where Linux tells.
fn port_holder(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| listening_inode(&std::fs::read_to_string(table).ok()?, port))?;
    let wanted = format!("socket:[{inode}]");
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        // `self` and its like name a process a second time.
        process.file_name().to_str()?.parse::<u32>().ok()?;
        let holds = std::fs::read_dir(process.path().join("fd")).ok()?.flatten().any(|fd| {
            std::fs::read_link(fd.path()).is_ok_and(|link| link.to_string_lossy() == wanted)
        });
        let name = std::fs::read_to_string(process.path().join("comm")).ok().filter(|_| holds)?;
        Some(format!("{} (process {})", name.trim(), process.file_name().to_string_lossy()))
    })
}

/// The socket that listens on a port, from a table of the kernel (`man 5 proc`).
fn listening_inode(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let fits = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTEN;
        fits.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

pub(super) fn disk(home: &Home) -> Vec<Check> {
    [("home", home.root().to_owned()), ("models", home.models())]
        .into_iter()
        .filter_map(|(what, path)| {
            let free = free_bytes(path.ancestors().find(|path| path.exists())?)?;
            let text = format!("{} free for {}", HumanBytes(free), path.display());
            Some(if free < LITTLE_ROOM {
                Check::new("disk", what, State::Missing, text, "make room: 1 GB is little")
            } else {
                Check::good("disk", what, text)
            })
        })
        .collect()
}

/// Free bytes where a path lies, as `df` tells; nothing where there is no such programme.
fn free_bytes(path: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(path).output().ok()?;
    free_of_df(&String::from_utf8_lossy(&output.stdout))
}

fn free_of_df(text: &str) -> Option<u64> {
    // The name of the file system may hold spaces; counted from `NN%` it does not matter.
    let fields: Vec<_> = text.lines().nth(1)?.split_whitespace().collect();
    let percent = fields.iter().position(|field| field.ends_with('%'))?;
    let kilobytes: u64 = fields.get(percent.checked_sub(1)?)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_part_of_its_name() {
        let there = ["USB Headset Analog".to_owned(), "Monitor".to_owned()];
        let state = |wanted, used, default: Option<&str>| {
            device("microphone", wanted, used, default.map(str::to_owned), &there).state
        };
        assert_eq!(state("default", true, Some("Monitor")), State::Good);
        assert_eq!(state("default", true, None), State::Missing);
        assert_eq!(state("Headset", true, None), State::Good);
        assert_eq!(state("Webcam", true, Some("Monitor")), State::Missing);
        assert_eq!(state("default", false, None), State::Good);
    }

    #[test]
    fn df_is_read_whatever_the_file_system_is_called() {
        let text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                    my disk 100000 40000 60000 40% /home/a b\n";
        assert_eq!(free_of_df(text), Some(60_000 * 1024));
        assert_eq!(free_of_df(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_holds_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let who = port_holder(listener.local_addr().unwrap().port()).unwrap();
        assert!(who.contains(&format!("(process {})", std::process::id())), "{who}");
    }

    #[test]
    fn servers_of_the_settings_and_of_the_catalogue_are_the_same() {
        let names = llm::providers::all(&Settings::default().llm, &|_| None);
        for provider in names {
            let set = format!("llm.model={}", provider.name);
            let sources =
                crate::config::Sources { sets: vec![set], ..crate::config::Sources::default() };
            crate::config::resolve(&sources).unwrap();
        }
    }
}
