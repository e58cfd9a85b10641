//! Store: append-only JSONL files with one writer each.
