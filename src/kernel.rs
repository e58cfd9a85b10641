//! The kernel: ids, the clock, the typed bus, the module host and every contract that two rooms
//! share. Rooms import the kernel; the kernel imports no room.

pub mod bus;
pub mod clock;
pub mod contracts;
pub mod host;
pub mod http;
pub mod ids;
pub mod load;
pub mod ports;
pub mod resample;
pub mod scene;
pub mod sound_system;
pub mod wav;
