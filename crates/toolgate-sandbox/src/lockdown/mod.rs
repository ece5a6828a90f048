//! What a worker gives up before it reads a script.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod report;
mod resources;
#[cfg(target_os = "linux")]
mod system_calls;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::lock_down;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::lock_down;
pub use self::report::{LockdownReport, Measure, MeasureKind, MeasureState};
pub(crate) use self::resources::bound_run;
