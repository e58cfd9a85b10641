//! Server-sent events out of bytes, however the network cuts them.
//!
//! Our own and not `eventsource-stream`: version 0.2.3 of that crate panics on a leading byte order
//! mark (it cuts the three-byte character after its first byte), throws away a last event that has
//! no blank line behind it, and lets a line grow without a limit.

/// Longest event that is taken, bytes. A chunk of a chat reply has some hundred.
const LIMIT: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its `event` field; empty when it has none.
    pub name: String,
    /// Its `data` fields, joined with line feeds.
    pub data: String,
}

/// The event or line in progress is longer than any reply could make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Decodes a stream of events by the rules of the HTML standard ("Server-sent events"), without its
/// fields for reconnecting.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    after_cr: bool,
    begun: bool,
    event: SseEvent,
    has_data: bool,
}

impl SseDecoder {
    /// Takes the next bytes and appends the events that they complete.
    ///
    /// # Errors
    /// [`TooLong`] when an event passes the limit; the stream is of no use then.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(events),
                _ => {
                    self.line.push(byte);
                    if self.line.len() + self.event.data.len() > LIMIT {
                        return Err(TooLong);
                    }
                }
            }
        }
        Ok(())
    }

    /// The stream is over: the event in progress, which a server that stops short may have left
    /// without its blank line.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events);
        }
        self.dispatch(&mut events);
        events.pop()
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if std::mem::replace(&mut self.begun, true) {
            &line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        if line.is_empty() {
            return self.dispatch(events);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => self.event.name = value.to_owned(),
            // Comments (an empty field name), `id`, `retry` and unknown fields.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk, &mut events).unwrap();
        }
        events.extend(decoder.finish());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn pairs(events: &[(&str, &str)]) -> Vec<(String, String)> {
        events.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect()
    }

    #[test]
    fn the_forms_that_servers_send() {
        for (text, expected) in [
            ("data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")][..]),
            ("\u{feff}data: a\n\n", &[("", "a")]),
            (": keep-alive\n\n:\n\ndata: a\n\n", &[("", "a")]),
            ("id: 7\nevent: state\nretry: 9\ndata: 1\ndata: 2\n\n", &[("state", "1\n2")]),
            ("event: gone\n\ndata: a\n\n", &[("", "a")]),
            ("data\n\ndata:  two spaces\n\n", &[("", ""), ("", " two spaces")]),
            ("data: no blank line", &[("", "no blank line")]),
            ("\n\n\n", &[]),
        ] {
            assert_eq!(decode(&[text.as_bytes()]), pairs(expected), "{text:?}");
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(decode(&[crlf.as_bytes()]), pairs(expected), "{crlf:?}");
            let cr = text.replace('\n', "\r");
            assert_eq!(decode(&[cr.as_bytes()]), pairs(expected), "{cr:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_the_network_cuts() {
        let text = "\u{feff}: hi\r\ndata: 你好\r\ndata: 👋\r\n\r\nevent: error\r\ndata: {}\r\n\r\n";
        let bytes = text.as_bytes();
        let whole = decode(&[bytes]);
        assert_eq!(whole, pairs(&[("", "你好\n👋"), ("error", "{}")]));
        for cut in 0..=bytes.len() {
            assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single), whole);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        assert_eq!(decoder.feed(&vec![b'x'; LIMIT + 1], &mut events), Err(TooLong));
        let mut decoder = SseDecoder::default();
        let lines = "data: 0123456789abcdef\n".repeat(LIMIT / 16 + 1);
        assert_eq!(decoder.feed(lines.as_bytes(), &mut events), Err(TooLong));
    }
}
