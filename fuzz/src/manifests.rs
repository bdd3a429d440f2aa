//! Manifests, indices and configurations. What is read of one is within its limits and has no NUL in it, and what is
//! refused is refused in words that a terminal can show.

use images::{Document, ImageError, read_config, read_document};

pub(crate) fn check(bytes: &[u8]) {
    let told = |error: &ImageError| {
        let told = error.to_string();
        assert!(!told.contains(char::is_control), "{told:?} is written to a terminal");
        assert!(told.len() < 4096, "{} bytes are too many to show", told.len());
    };
    match read_document(bytes, None) {
        Ok(Document::Manifest(manifest)) => assert!(manifest.layers.len() <= 128),
        Ok(Document::Chosen(blob)) => assert_eq!(blob.digest.hex().len(), 64),
        Err(error) => told(&error),
    }
    for layers in 0..3 {
        match read_config(bytes, layers) {
            Ok(config) => {
                assert_eq!(config.layers.len(), layers);
                let settings = &config.settings;
                let texts = [&settings.entrypoint, &settings.command, &settings.environment];
                assert!(!texts.into_iter().flatten().any(|text| text.contains('\0')));
            }
            Err(error) => told(&error),
        }
    }
}
