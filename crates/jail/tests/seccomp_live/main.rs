//! The filters on live processes: the kernel itself must come to the verdicts that the interpreter comes to.

#[cfg(test)]
mod supervisor;
#[cfg(test)]
mod sys;
#[cfg(test)]
#[cfg(test)]
mod tools;
#[cfg(test)]
mod walls;
