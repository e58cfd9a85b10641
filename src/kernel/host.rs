//! Starts rooms in the order of their dependencies and stops them in reverse.

use std::collections::{BTreeMap, BTreeSet};

use super::bus::Bus;
use super::clock::BoxFuture;

/// A room with a life: something that starts, runs on the bus, and stops.
pub trait Module: Send {
    /// The name that other modules depend on.
    fn name(&self) -> &'static str;

    /// Modules that must run before this one. A name that no module has is ignored: an optional
    /// room may be left out.
    fn dependencies(&self) -> &'static [&'static str] {
        &[]
    }

    /// Starts the room. An error stops the start of the whole, and what already runs is stopped.
    fn start<'a>(&'a mut self, bus: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>>;

    /// Stops the room; called once, only after a start that succeeded.
    fn stop(&mut self) -> BoxFuture<'_, ()>;
}

/// Why the modules could not be started.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Two modules have one name.
    #[error("two modules are named `{0}`")]
    Duplicate(&'static str),
    /// Modules that wait for each other.
    #[error("modules depend on each other in a circle: {0}")]
    Cycle(String),
    /// A module's start failed; everything that ran was stopped again.
    #[error("`{name}` could not start: {why:#}")]
    Start {
        /// The module.
        name: &'static str,
        /// What it said. Not a source: it is in the text already.
        why: anyhow::Error,
    },
}

/// The modules of a running Alice.
#[derive(Default)]
pub struct Host {
    waiting: Vec<Box<dyn Module>>,
    running: Vec<Box<dyn Module>>,
}

impl Host {
    /// Adds a module; it runs from [`Host::start`] on.
    pub fn add(&mut self, module: impl Module + 'static) {
        self.waiting.push(Box::new(module));
    }

    /// Starts all modules, dependencies first and otherwise in the order of [`Host::add`].
    ///
    /// # Errors
    /// When one fails to start, the running ones are stopped in reverse and the error returned.
    pub async fn start(&mut self, bus: &Bus) -> Result<(), HostError> {
        for mut module in in_order(std::mem::take(&mut self.waiting))? {
            let name = module.name();
            if let Err(why) = module.start(bus).await {
                self.stop().await;
                return Err(HostError::Start { name, why });
            }
            tracing::debug!(module = name, "started");
            self.running.push(module);
        }
        Ok(())
    }

    /// Stops the running modules, last started first.
    pub async fn stop(&mut self) {
        while let Some(mut module) = self.running.pop() {
            module.stop().await;
            tracing::debug!(module = module.name(), "stopped");
        }
    }
}

fn in_order(mut modules: Vec<Box<dyn Module>>) -> Result<Vec<Box<dyn Module>>, HostError> {
    let mut names = BTreeSet::new();
    for module in &modules {
        if !names.insert(module.name()) {
            return Err(HostError::Duplicate(module.name()));
        }
    }
    let waits: BTreeMap<_, Vec<_>> = modules
        .iter()
        .map(|m| (m.name(), m.dependencies().iter().filter(|d| names.contains(*d)).collect()))
        .collect();
    let mut done = BTreeSet::new();
    let mut ordered = Vec::new();
    while !modules.is_empty() {
        let ready = modules.iter().position(|module| {
            waits
                .get(module.name())
                .is_none_or(|needs: &Vec<_>| needs.iter().all(|n| done.contains(*n)))
        });
        let Some(ready) = ready else {
            let left: Vec<_> = modules.iter().map(|m| m.name()).collect();
            return Err(HostError::Cycle(left.join(", ")));
        };
        let module = modules.remove(ready);
        done.insert(module.name());
        ordered.push(module);
    }
    Ok(ordered)
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
