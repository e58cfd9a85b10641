//! What `alice bench` measures with: models that behave as they are told, and the report.

pub mod fake_llm;
pub mod instant;
pub mod report;
