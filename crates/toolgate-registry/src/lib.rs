//! Servers that are not configured, and skills.
//!
//! - [`Registry`] lists the servers of folders, files, and remote registries that speak the API of the
//!   official one. The lists of remote registries are cached.
//! - [`Plan`] is exactly what a server would run or contact. A person sees all of it before anything
//!   happens, and consents to this plan only: its [fingerprint](Plan::fingerprint) identifies it.
//! - [`Skill`] is a text for a model, with the servers it needs.
//!
//! Everything that is read here is untrusted: its size is bounded, and what a person is shown of it
//! has no hidden characters.

mod entry;
mod error;
mod files;
mod fill;
mod plan;
mod registry;
mod remote;
mod show;
mod skill;

pub use entry::RegistryEntry;
pub use error::{NoPlan, RegistryError};
pub use fill::MissingValue;
pub use plan::{Plan, PlanTarget, PlanVariable};
pub use registry::{Registry, RegistryServers, RegistrySettings, ServerSource};
pub use show::visible;
pub use skill::{
    MAX_SKILL_BYTES, Skill, SkillFile, SkillProblem, Skills, front_matter_json, read_skill_file,
    read_skills, sha256, skill_files,
};
