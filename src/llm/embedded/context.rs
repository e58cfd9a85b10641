//! The inference context of llama.cpp, through its C interface.
//!
//! `llama-cpp-2` wraps the model, the vocabulary and the samplers, and they are used as it gives
//! them. Of its context two things are missing that a voice needs: changing the number of threads
//! between two steps, and stopping in the middle of one. Its pointer is private, so the context is
//! ours. All `unsafe` of the embedded model is in this file.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::OnceLock;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;

/// The library, initialised once for the process, with its logs going to ours.
///
/// # Errors
/// When something else in the process has initialised it.
pub fn backend() -> Result<&'static LlamaBackend, String> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    BACKEND
        .get_or_init(|| {
            // SAFETY: the callback is a plain function that lives as long as the programme.
            unsafe { sys::llama_log_set(Some(log), std::ptr::null_mut()) };
            LlamaBackend::init().map_err(|error| format!("llama.cpp can't start: {error}"))
        })
        .as_ref()
        .map_err(Clone::clone)
}

/// llama.cpp is talkative: what it calls information is for debugging here.
unsafe extern "C" fn log(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: llama.cpp hands over a C string that lives during the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    match level {
        // Steps that are aborted on purpose are "errors" to llama.cpp; real ones come back as a
        // result, which is told to the person.
        sys::GGML_LOG_LEVEL_ERROR | sys::GGML_LOG_LEVEL_WARN | sys::GGML_LOG_LEVEL_INFO => {
            tracing::debug!(target: "llama.cpp", "{text}")
        }
        _ => tracing::trace!(target: "llama.cpp", "{text}"),
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The tokens are in the cache, and the logits of the last one are there.
    Done,
    /// It was stopped; what the cache holds behind the tokens before the step is undefined until
    /// [`Context::truncate`].
    Stopped,
}

/// One sequence of tokens with its key-value cache.
pub struct Context<'m> {
    raw: NonNull<sys::llama_context>,
    vocabulary: usize,
    model: PhantomData<&'m LlamaModel>,
}

impl<'m> Context<'m> {
    /// A context for `length` tokens that takes at most `batch` of them in one step.
    ///
    /// # Errors
    /// When there is not enough memory, or the model has no text vocabulary.
    pub fn new(model: &'m LlamaModel, length: u32, batch: u32) -> Result<Self, String> {
        const { assert!(size_of::<LlamaModel>() == size_of::<*mut sys::llama_model>()) };
        // SAFETY: `LlamaModel` is `repr(transparent)` over one non-null pointer to the model, in
        // the version that Cargo.toml pins exactly.
        let model_pointer: *mut sys::llama_model = unsafe { std::mem::transmute_copy(model) };
        // SAFETY: the function takes nothing and returns plain data.
        let mut params = unsafe { sys::llama_context_default_params() };
        params.n_ctx = length;
        params.n_batch = batch;
        params.n_ubatch = batch;
        params.n_threads = 1;
        params.n_threads_batch = 1;
        params.flash_attn_type = sys::LLAMA_FLASH_ATTN_TYPE_AUTO;
        params.no_perf = true;
        // SAFETY: the model is alive, and stays so for `'m`; the parameters hold no pointers.
        let raw = unsafe { sys::llama_init_from_model(model_pointer, params) };
        let raw = NonNull::new(raw).ok_or("not enough memory for the language model's context")?;
        let vocabulary = usize::try_from(model.n_vocab()).unwrap_or_default();
        Ok(Self { raw, vocabulary, model: PhantomData })
    }

    /// How many threads the next steps use.
    pub fn set_threads(&mut self, threads: usize) {
        let threads = i32::try_from(threads).unwrap_or(1).max(1);
        // SAFETY: the context is alive and nothing else uses it (`&mut`).
        unsafe { sys::llama_set_n_threads(self.raw.as_ptr(), threads, threads) };
    }

    /// Appends tokens to the sequence. `stop` is asked some hundred times during the step, from this
    /// thread, and ends it within some milliseconds.
    ///
    /// # Errors
    /// llama.cpp's code when the cache is full or the computation fails.
    pub fn decode(&mut self, tokens: &[LlamaToken], stop: &dyn Fn() -> bool) -> Result<Step, i32> {
        unsafe extern "C" fn ask(data: *mut c_void) -> bool {
            // SAFETY: `data` is the address of `stop` below, which lives until `decode` returns.
            let stop = unsafe { &*data.cast::<&dyn Fn() -> bool>() };
            stop()
        }
        let mut ids: Vec<sys::llama_token> = tokens.iter().map(|token| token.0).collect();
        let count = i32::try_from(ids.len()).unwrap_or(i32::MAX);
        let data = std::ptr::from_ref(&stop).cast_mut().cast::<c_void>();
        // SAFETY: the context is alive and used by nothing else (`&mut`). The batch points at `ids`,
        // which outlives the call. The callback and its data are taken back before they go.
        let code = unsafe {
            let context = self.raw.as_ptr();
            sys::llama_set_abort_callback(context, Some(ask), data);
            let code =
                sys::llama_decode(context, sys::llama_batch_get_one(ids.as_mut_ptr(), count));
            sys::llama_set_abort_callback(context, None, std::ptr::null_mut());
            code
        };
        match code {
            0 => Ok(Step::Done),
            2 => Ok(Step::Stopped),
            code => Err(code),
        }
    }

    /// The logits behind the last token, one for each of the vocabulary; empty before the first step.
    pub fn logits(&self) -> &[f32] {
        // SAFETY: the context is alive; the call waits for a running step at most.
        let logits = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), -1) };
        if logits.is_null() {
            return &[];
        }
        // SAFETY: llama.cpp keeps a row of the vocabulary's size until the next step, and a step
        // needs `&mut self`.
        unsafe { std::slice::from_raw_parts(logits, self.vocabulary) }
    }

    /// Forgets everything behind the first `length` tokens. `false`: this model can't forget a part
    /// (a recurrent one), and everything was forgotten.
    pub fn truncate(&mut self, length: usize) -> bool {
        let from = i32::try_from(length).unwrap_or(i32::MAX);
        // SAFETY: the context is alive and used by nothing else (`&mut`); -1 means to the end.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            let kept = sys::llama_memory_seq_rm(memory, 0, from, -1);
            if !kept {
                sys::llama_memory_seq_rm(memory, 0, -1, -1);
            }
            kept
        }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `llama_init_from_model` and freed only here.
        unsafe { sys::llama_free(self.raw.as_ptr()) };
    }
}
