//! The system call filters against what the design says of them: every number against the golden files, every
//! argument rule against a plain function, on both machines from either.

#[cfg(test)]
mod arguments;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod own_stack;
#[cfg(test)]
mod reference;
