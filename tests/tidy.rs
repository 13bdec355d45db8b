//! The house rules that a program can check: which module may import which, who owns a dependency,
//! what the pure modules may not touch, sizes, and marks that do not belong in the tree.
//!
//! Every check is a function from sources to offenders (`file:line: why`). One test runs it over the
//! tree, another shows that it finds what it looks for.

#[cfg(test)]
#[path = "tidy/layers.rs"]
mod layers;
#[cfg(test)]
#[path = "tidy/shape.rs"]
mod shape;
#[cfg(test)]
#[path = "tidy/source.rs"]
mod source;
