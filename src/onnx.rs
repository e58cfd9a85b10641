//! The one place that loads ONNX Runtime and opens its sessions.
//!
//! The library is loaded at run time from the weights folder (model `onnxruntime`) or from
//! `ORT_DYLIB_PATH`, once for the process, before any session is made. The programme forbids its
//! telemetry before that, by `ORT_DISABLE_TELEMETRY` (see `main`).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};

use crate::config::Home;

static RUNTIME: OnceLock<Result<(PathBuf, Environment), String>> = OnceLock::new();

/// Loads the library; later calls answer what the first one found. Returns its path.
///
/// # Errors
/// One line that says what is missing and what to do.
pub fn load(home: &Home) -> anyhow::Result<&'static Path> {
    runtime(home).map(|(path, _)| path.as_path())
}

fn runtime(home: &Home) -> anyhow::Result<&'static (PathBuf, Environment)> {
    RUNTIME
        .get_or_init(|| find_and_load(home).map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(anyhow::Error::msg)
}

fn find_and_load(home: &Home) -> anyhow::Result<(PathBuf, Environment)> {
    let path = match std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => {
            let library = library_in(&home.models().join("onnxruntime")).context(
                "ONNX Runtime is missing: run `alice models pull`, or set ORT_DYLIB_PATH",
            )?;
            // A damaged library would take the process with it.
            let name = library.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            crate::models::locate(home, "onnxruntime", name)?
        }
    };
    let say = || format!("ONNX Runtime at {} can't be loaded", path.display());
    let environment = ort::init_from(&path)
        .with_context(say)?
        .with_name("alice")
        .with_telemetry(false)
        .build()
        .with_context(say)?;
    Ok((path, environment))
}

/// The library of this system in a folder, whatever its version.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let fits = |name: &str| {
        (name.starts_with("libonnxruntime.") || name == "onnxruntime.dll")
            && !name.contains("providers")
    };
    std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(fits))
}

/// Opens a model that runs on `threads` threads (0: one for each core). The threads sleep while
/// there is nothing to do: an idle Alice must not spin (voice.md G.1, 26).
///
/// # Errors
/// When the library or the model can't be loaded.
pub fn open(home: &Home, model: &Path, threads: usize) -> anyhow::Result<Session> {
    let say = || format!("model {} can't be opened", model.display());
    builder(home, threads)
        .and_then(|mut builder| {
            builder.commit_from_file(model).map_err(|error| anyhow::anyhow!("{error}"))
        })
        .with_context(say)
}

/// Like [`open`], and makes values that are computed inside the model outputs as well, after its own
/// ones: exports of speech models keep the phoneme durations inside, for example.
///
/// # Errors
/// As [`open`]; also when the model holds no value of such a name.
pub fn open_with_outputs(
    home: &Home,
    model: &Path,
    threads: usize,
    names: &[&str],
) -> anyhow::Result<Session> {
    let say = || format!("model {} can't be opened", model.display());
    let mut bytes = std::fs::read(model).with_context(say)?;
    bytes.extend(graph_with_outputs(names));
    builder(home, threads)
        .and_then(|mut builder| {
            builder.commit_from_memory(&bytes).map_err(|error| anyhow::anyhow!("{error}"))
        })
        .with_context(say)
}

/// An ONNX `ModelProto` that holds only a graph with these outputs. Protocol buffers that follow each
/// other are read as one message, repeated fields joined, so appended to a model it adds to its
/// outputs. (Field numbers of onnx.proto: model.graph 7, graph.output 12, value_info.name 1.)
fn graph_with_outputs(names: &[&str]) -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length > 0x7f {
            out.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(content);
        out
    }
    let outputs: Vec<u8> =
        names.iter().flat_map(|name| field(12, &field(1, name.as_bytes()))).collect();
    field(7, &outputs)
}

#[expect(clippy::result_large_err, reason = "the builder's own error carries the builder")]
fn builder(home: &Home, threads: usize) -> anyhow::Result<SessionBuilder> {
    let (_, environment) = runtime(home)?;
    let builder = Session::builder(environment).map_err(|error| anyhow::anyhow!("{error}"))?;
    builder
        .with_optimization_level(GraphOptimizationLevel::All)
        .and_then(|builder| builder.with_intra_threads(threads))
        .and_then(|builder| builder.with_inter_threads(1))
        .and_then(|builder| builder.with_intra_op_spinning(false))
        .and_then(|builder| builder.with_inter_op_spinning(false))
        .map_err(|error| anyhow::anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_siblings_are_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libonnxruntime_providers_shared.so"), "").unwrap();
        assert_eq!(library_in(folder.path()), None);
        let library = folder.path().join("libonnxruntime.so.1.32.0");
        std::fs::write(&library, "").unwrap();
        assert_eq!(library_in(folder.path()), Some(library));
    }

    #[test]
    fn silero_opens() {
        let Some(home) = crate::testing::weights("silero-vad", "silero_vad.onnx") else { return };
        let model = crate::models::locate(&home, "silero-vad", "silero_vad.onnx").unwrap();
        assert_eq!(open(&home, &model, 1).unwrap().inputs().len(), 3);
    }
}
