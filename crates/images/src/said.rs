//! What another process of ours told about why it failed.

/// Causes as another process told them, the outermost first.
#[derive(Debug)]
pub struct Said {
    text: String,
    cause: Option<Box<Said>>,
}

impl Said {
    /// The first of them, if any.
    #[must_use]
    pub fn chain(causes: &[String]) -> Option<Self> {
        let (text, rest) = causes.split_first()?;
        Some(Self { text: text.clone(), cause: Self::chain(rest).map(Box::new) })
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Said {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
