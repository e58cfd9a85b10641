//! Composition root: builds the rooms in dependency order, joins them, stops them in reverse.

pub mod timeline;
