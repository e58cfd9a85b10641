//! Mind: the queue of turns, the conversation, and what of it was really heard.
