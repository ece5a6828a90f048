//! What can be had beside what is configured: servers of registries, and skills.
//!
//! - [`Registry`] knows the servers of folders, files, and registries that speak the API of the
//!   official one; what the latter said is cached.
//! - [`Plan`] is what one of them would run or contact, exactly. A person sees all of it before
//!   anything happens, and consents to that and nothing else: its [fingerprint](Plan::fingerprint)
//!   tells it from any other.
//! - [`Skill`] is a text for a model, with the servers it needs.
//!
//! Everything that is read here is hostile: it is bounded, and what a person is shown of it has no
//! character that a terminal or an eye could trip over.

mod entry;
mod error;
mod files;
mod fill;
mod plan;
mod registry;
mod remote;
mod show;
mod skill;

pub use entry::Entry;
pub use error::{NoPlan, RegistryError};
pub use plan::{Plan, Target, Variable};
pub use registry::{Known, Registry, RegistrySettings, Source};
pub use show::visible;
pub use skill::{MAX_SKILL_BYTES, Skill, SkillProblem, Skills, read_skills};
