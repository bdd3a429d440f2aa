//! What agentbox run does, as a person or a script sees it.
