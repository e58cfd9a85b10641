//! Names of things: sessions, turns, segments, media.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// One conversation. The text form names the transcript file of the session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// A new id; ids sort by the time they were made (UUID version 7).
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7().simple().to_string())
    }

    /// An id from its text form. Anything but 1–64 of `[A-Za-z0-9._-]` is refused, because the text
    /// becomes a file name.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=64).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One exchange: something the user said or typed, and the answer to it. Ids grow within a process,
/// so a later turn always compares greater. A discarded draft keeps its id to itself: the next draft
/// of the same utterance gets a new one, and whatever still arrives for the old one is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub u64);

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Hands out turn ids; shared by every entrance (ears, page, terminal).
#[derive(Debug, Default)]
pub struct TurnIds(AtomicU64);

impl TurnIds {
    /// Ids that go on after `last`, for a session that is resumed: an id is used once in a transcript.
    pub fn after(last: TurnId) -> Self {
        Self(AtomicU64::new(last.0))
    }

    /// The next id; the first is 1.
    pub fn next(&self) -> TurnId {
        TurnId(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// One spoken piece of a reply: the turn and its place in it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentId {
    /// The turn that the segment answers.
    pub turn: TurnId,
    /// Its place in the reply, from 0, without gaps.
    pub index: u32,
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.index)
    }
}

/// Name of a piece of media (a segment's sound, an image) that `GET /media/{id}` serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MediaId(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_that_would_leave_their_folder_are_refused() {
        for bad in ["", "../x", "a/b", ".hidden", "a b", &"x".repeat(65)] {
            assert!(SessionId::parse(bad).is_none(), "{bad:?}");
        }
        let id = SessionId::fresh();
        assert_eq!(SessionId::parse(id.as_str()), Some(id));
    }

    #[test]
    fn turn_ids_grow_from_one() {
        let ids = TurnIds::default();
        assert_eq!((ids.next(), ids.next()), (TurnId(1), TurnId(2)));
    }
}
