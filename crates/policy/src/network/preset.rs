//! Lists of rules that come with the program, by name. They are data, in one file.

use super::Rule;

const FILE: &str = include_str!("presets.txt");

/// A list that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its rules, with those of the lists that it names.
    pub rules: Vec<Rule>,
}

impl Preset {
    /// The list of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let (name, lines) = sections().find(|(known, _)| *known == name)?;
        Some(Self { name, rules: rules(lines) })
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        sections().map(|(name, _)| name)
    }
}

/// Each heading with what is below it.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILE.split("\n[").skip(1).filter_map(|section| section.split_once("]\n"))
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim_ascii).filter(|line| !line.is_empty())
}

/// That each line is a rule is a test's to say.
fn rules(text: &'static str) -> Vec<Rule> {
    lines(text)
        .flat_map(|line| match line.strip_prefix('@') {
            Some(other) => {
                let section = sections().find(|(name, _)| *name == other);
                section.map(|(_, text)| rules(text)).unwrap_or_default()
            }
            None => line.parse().into_iter().collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_rule_or_a_list_before_which_nothing_stands() {
        for (name, text) in sections() {
            for line in lines(text) {
                match line.strip_prefix('@') {
                    Some(other) => {
                        let (_, text) = sections().find(|(known, _)| *known == other).unwrap();
                        assert!(lines(text).all(|line| !line.starts_with('@')), "{name} names {other}");
                    }
                    None => assert!(line.parse::<Rule>().is_ok(), "{name}: {line}"),
                }
            }
        }
    }

    #[test]
    fn the_lists_are_known_by_name() {
        let names: Vec<&str> = Preset::names().collect();
        assert_eq!(
            names,
            ["default", "pypi", "npm", "crates", "github", "debian", "go", "openai", "anthropic"]
        );
        assert_eq!(Preset::find("default").unwrap().rules.len(), 11);
        assert_eq!(Preset::find("anthropic").unwrap().rules[0].to_string(), "api.anthropic.com");
        assert_eq!(Preset::find("openai").unwrap().rules.len(), 5);
        assert_eq!(Preset::find("nobody"), None);
        assert!(names.iter().all(|name| !Preset::find(name).unwrap().rules.is_empty()));
    }
}
