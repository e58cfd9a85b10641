//! What `alice bench` measures with: models and devices that behave as they are told, the talks, and
//! the report.

pub mod devices;
pub mod endurance;
pub mod fake_llm;
pub mod instant;
pub mod report;
pub mod scenarios;
pub mod senses;
pub mod talk;
pub mod viewers;
