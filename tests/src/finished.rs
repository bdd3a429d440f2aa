//! What came of a command.

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit code; 128+N if signal N ended the agentbox program itself.
    pub code: i32,
    /// All that it wrote there.
    pub stdout: Vec<u8>,
    /// All that it wrote there, agentbox's own words included.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Its stdout as text.
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its stderr as text.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub fn assert_success(&self) -> &Self {
        self.assert_code(0)
    }

    /// Fails the test unless the command ended with this code.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "\nstdout: {}\nstderr: {}", self.stdout(), self.stderr());
        self
    }

    /// Fails the test unless agentbox itself refused, in the form that a person reads.
    #[track_caller]
    pub fn assert_refused(&self) -> &Self {
        self.assert_code(125);
        let stderr = self.stderr();
        assert!(stderr.lines().any(|line| line.starts_with("error: ")), "no error: line in\n{stderr}");
        self
    }
}
