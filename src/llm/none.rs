//! The model that stands in where there is none: Alice starts all the same and says what to do.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::kernel::clock::BoxFuture;
use crate::kernel::ports::{ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream};

/// Answers every request with one line.
#[derive(Debug)]
pub struct NoModel {
    line: String,
}

impl NoModel {
    /// A model that answers with this line.
    pub fn new(line: String) -> Self {
        Self { line }
    }
}

impl ChatModel for NoModel {
    fn name(&self) -> String {
        "none".into()
    }

    fn chat(&self, _request: ChatRequest, _cancel: CancellationToken) -> ChatStream {
        let (out, stream) = mpsc::channel(1);
        // The queue is empty, so there is room.
        let _ = out.try_send(Err(ChatError::Unavailable(self.line.clone())));
        stream
    }

    fn warm(&self, _messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
