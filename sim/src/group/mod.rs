//! Consumer groups: the real coordinator with members that join, hear late or twice or never, are removed, and a coordinator
//! that fails over; explored breadth-first in small scopes.
//!
//! | invariant | |
//! | --- | --- |
//! | O | no partition is held by two members that were not removed |
//! | H | a member that was not removed holds only what the coordinator thinks that it holds |
//! | C | a commit counts only for the grant that it was made under |
//! | L | nothing but its own word or its silence ends a member's life |
//! | P | when everything is heard again, each partition comes to one member |

mod model;
mod scope;
mod world;

pub use model::{GroupModel, Step};
pub use scope::GroupScope;
pub use world::World;
