//! A language model that answers at once from a list: what is left of a turn's time is Alice's own.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::kernel::clock::BoxFuture;
use crate::kernel::ports::{
    ChatDelta, ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream, StopReason,
};

/// Gives the replies of a list in turn, each whole before anyone reads it.
#[derive(Debug)]
pub struct Instant {
    replies: Vec<String>,
    asked: AtomicUsize,
}

impl Instant {
    /// A model of these replies; an empty list replies nothing.
    pub fn new(replies: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { replies: replies.into_iter().map(Into::into).collect(), asked: AtomicUsize::new(0) }
    }
}

impl ChatModel for Instant {
    fn name(&self) -> String {
        "instant: a list of replies".into()
    }

    fn chat(&self, _request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let reply = asked
            .checked_rem(self.replies.len())
            .and_then(|index| self.replies.get(index))
            .map(String::as_str)
            .unwrap_or_default();
        let words: Vec<&str> = reply.split_inclusive(' ').collect();
        let (out, stream) = mpsc::channel(words.len() + 1);
        // The queue holds the whole reply, so nothing here can fail.
        if cancel.is_cancelled() {
            let _ = out.try_send(Err(ChatError::Cancelled));
            return stream;
        }
        for word in words {
            let _ = out.try_send(Ok(ChatDelta::Text(word.to_owned())));
        }
        let _ = out.try_send(Ok(ChatDelta::Done(StopReason::End)));
        stream
    }

    fn warm(&self, _messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replies_come_in_turn_and_end() {
        let model = Instant::new(["one two", "three"]);
        for expected in [vec!["one ", "two"], vec!["three"], vec!["one ", "two"]] {
            let request = ChatRequest { messages: vec![], max_tokens: 9, temperature: 0.0 };
            let mut stream = model.chat(request, CancellationToken::new());
            for word in expected {
                assert_eq!(stream.recv().await, Some(Ok(ChatDelta::Text(word.into()))));
            }
            assert_eq!(stream.recv().await, Some(Ok(ChatDelta::Done(StopReason::End))));
            assert_eq!(stream.recv().await, None);
        }
    }
}
