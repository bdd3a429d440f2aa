//! Changes for programs; the form is documented with the command.

use serde_json::{Value, json};
use workspace::{Review, Reviewed, Risk, exact_name, is_unseen};

/// A line of JSON in which nothing reverses or hides what follows, either: such characters are escaped, and read as the
/// same by every program.
pub(super) fn line(value: &Value) -> String {
    let mut line = String::new();
    for character in crate::output::json_line(value).chars() {
        if !is_unseen(character) {
            line.push(character);
            continue;
        }
        let mut halves = [0; 2];
        for half in character.encode_utf16(&mut halves) {
            line.push_str(&format!("\\u{half:04x}"));
        }
    }
    line
}

pub(super) fn review(review: &Review) -> Value {
    let commits: Vec<Value> = review
        .commits
        .iter()
        .map(|(commit, changed)| {
            json!({
                "id": commit.id,
                "author": exact_name(&commit.author),
                "subject": exact_name(&commit.subject),
                "files": files(changed),
            })
        })
        .collect();
    let left_out: Vec<Value> = review
        .remarks
        .iter()
        .map(|remark| {
            let why = remark.why;
            json!({"path": exact_name(&remark.path), "code": why.code(), "reason": why.reason()})
        })
        .collect();
    let named: Vec<Value> = review
        .named
        .iter()
        .map(|named| {
            let Risk { code, reason } = &named.risk;
            json!({"path": exact_name(&named.path), "code": code.name(), "reason": reason})
        })
        .collect();
    json!({
        "tree": review.tree,
        "base": review.base,
        "base_commit": review.base_commit,
        "files": files(&review.files),
        "commits": commits,
        "left_out": left_out,
        "mode": review.mode.name(),
        "named": named,
    })
}

fn files(files: &[Reviewed]) -> Vec<Value> {
    let risk = |risk: &Risk| json!({"code": risk.code.name(), "reason": risk.reason});
    let file = |file: &Reviewed| {
        let change = &file.change;
        json!({
            "path": exact_name(&change.path),
            "old_path": change.old_path.as_deref().map(exact_name),
            "status": change.status.name(),
            "old_mode": change.old_mode,
            "mode": change.mode,
            "added": change.added,
            "removed": change.removed,
            "binary": change.is_binary(),
            "risks": file.risks.iter().map(risk).collect::<Vec<_>>(),
            "conflict": file.conflict,
        })
    };
    files.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_json_hides_or_reverses() {
        let value = json!({"path": "a\u{202e}b\u{e0041}ü\u{1b}"});
        let line = line(&value);
        assert_eq!(line, "{\"path\":\"a\\u202eb\\udb40\\udc41ü\\u001b\"}\n");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
