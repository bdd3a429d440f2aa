//! Names of images. One that is read has one form, which is read again as the same and never leads anywhere.

use images::Reference;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let reference = match text.parse::<Reference>() {
        Ok(reference) => reference,
        Err(error) => {
            let told = error.to_string();
            assert!(!told.contains(char::is_control), "{told:?} is written to a terminal");
            return;
        }
    };
    let shown = reference.to_string();
    assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()), "{shown:?}");
    assert_eq!(shown.parse().as_ref(), Ok(&reference));
    assert_eq!(reference.familiar().parse().as_ref(), Ok(&reference));
    assert!(!reference.repository().split('/').any(|part| matches!(part, "" | "." | "..")), "{shown}");
    assert!(!reference.registry().contains('/') && !reference.asked().contains('/'), "{shown}");
}
