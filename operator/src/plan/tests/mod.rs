//! Tests of the plan, named after the rules of the operator.

mod bootstrap;
mod children;
mod consent;
mod deletion;
mod pools;
mod property;
mod rolling;
mod volumes;
mod world;
