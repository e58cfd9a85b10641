//! Faults that still stand, for viewers that come later than the notice did.

use std::collections::VecDeque;

use crate::kernel::contracts::Notice;

/// Most faults that are kept.
const MOST: usize = 8;

/// Codes of faults that last, and the code that says that one is over; empty: it lasts until the
/// next start. Other notices are about a moment.
const LASTING: [(&str, &str); 13] = [
    ("deaf", ""),
    ("mute", ""),
    ("mic_failed", ""),
    ("llm_problem", ""),
    ("voice_fallback", ""),
    ("end_of_turn_timer", ""),
    ("mic_lost", "mic_back"),
    ("speaker_lost", "speaker_back"),
    ("llm_fallback", "llm_back"),
    ("stt_fallback", "stt_back"),
    ("stt_failed", "stt_back"),
    ("vad_failed", "vad_back"),
    ("transcript_unwritable", "transcript_written"),
];

/// The faults that stand now, oldest first.
#[derive(Debug, Default)]
pub(super) struct Standing(VecDeque<Notice>);

impl Standing {
    /// Takes the next notice.
    pub(super) fn take(&mut self, notice: &Notice) {
        let ended =
            |code: &str| LASTING.iter().any(|(fault, end)| *fault == code && *end == notice.code);
        self.0.retain(|fault| !ended(fault.code) && fault != notice);
        if LASTING.iter().any(|(fault, _)| *fault == notice.code) {
            self.0.push_back(notice.clone());
            if self.0.len() > MOST {
                self.0.pop_front();
            }
        }
    }

    /// All of them.
    pub(super) fn notices(&self) -> &VecDeque<Notice> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::contracts::NoticeLevel;

    #[test]
    fn a_fault_stands_until_it_is_over() {
        let mut standing = Standing::default();
        let mut after = |code: &'static str, text: &str| {
            let level = NoticeLevel::Warning;
            standing.take(&Notice { level, code, text: text.into(), hint: None });
            let codes = standing.notices().iter().map(|notice| notice.code);
            codes.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(after("llm_problem", "one"), "llm_problem");
        assert_eq!(after("llm_problem", "two"), "llm_problem llm_problem");
        assert_eq!(after("llm_problem", "two"), "llm_problem llm_problem", "said again");
        assert_eq!(after("reply_cut", ""), "llm_problem llm_problem", "about a moment");
        assert_eq!(after("mic_lost", ""), "llm_problem llm_problem mic_lost");
        assert_eq!(after("speaker_back", ""), "llm_problem llm_problem mic_lost");
        assert_eq!(after("mic_back", ""), "llm_problem llm_problem");
        for n in 0..10 {
            after("llm_problem", &n.to_string());
        }
        assert_eq!(standing.notices().len(), MOST);
    }
}
