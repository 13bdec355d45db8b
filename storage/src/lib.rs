//! An append-only log of opaque bytes with group commit, on redb.
