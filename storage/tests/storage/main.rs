//! Tests of the store through its public surface.

mod basics;
mod crash;
mod damage;
mod failing;
mod images;
mod kit;
mod model;
mod moves;
