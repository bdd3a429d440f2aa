//! Lists of rules. A list that is read is shown, and what is shown is the same list.

use policy::network::{Rule, parse_allowlist};

pub(crate) fn check(bytes: &[u8]) {
    let rules = match parse_allowlist(bytes) {
        Ok(rules) => rules,
        Err(error) => {
            let told = error.to_string();
            assert!(!told.contains(char::is_control), "{told:?} is written to a terminal");
            return;
        }
    };
    assert!(rules.len() <= bytes.split(|byte| *byte == b'\n').count());
    let shown: Vec<String> = rules.iter().map(Rule::to_string).collect();
    for line in &shown {
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line:?}");
    }
    assert_eq!(parse_allowlist(shown.join("\n").as_bytes()), Ok(rules));
}
