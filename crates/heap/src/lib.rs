//! The memory of our own programs: dlmalloc, which keeps what it has, over pages that are there when they are asked for.
//! A program has it by naming this crate.
//!
//! Most of our processes live for milliseconds and feel it in every phase when blocks go back to the kernel one by one, as
//! with musl's own allocator, when each page is fetched by a fault of its own, and when a lock is a call.

mod sys;
