//! The program that becomes PID 1 of every sandbox. A file of its own, small and static, so that one copy in
//! memory serves all sandboxes and none of the owner's code is inside.

use std::process::ExitCode;

/// musl's own allocator gives small blocks back to the kernel one by one.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    init::main()
}
