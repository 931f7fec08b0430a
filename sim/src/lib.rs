//! Models and simulation.
