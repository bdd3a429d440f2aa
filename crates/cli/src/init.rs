//! The program that becomes PID 1 of every sandbox. A file of its own, small and static, so that one copy in
//! memory serves all sandboxes and none of the owner's code is inside.

use std::process::ExitCode;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

fn main() -> ExitCode {
    init::main()
}
