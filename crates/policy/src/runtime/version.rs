//! Which versions have known holes. The floor of each program is the first release without them; what cannot be read
//! counts as old, and so does what a distribution says it has mended, unless it is on the list below.

use super::Standing;
use crate::Backend;

/// What is known of how a program was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build<'text> {
    /// What it says of itself.
    pub said: Option<&'text str>,
    /// The version of its main module, as Go's linker put it into the file.
    pub module: Option<&'text str>,
}

/// The first day of the month from which on a runsc is new enough.
const RUNSC_FLOOR: u32 = 20_260_901;

/// The first releases of runc without CVE-2024-21626, CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881, one for each
/// line that was mended; lines after the last have them from their beginning.
const RUNC_FLOORS: [Number; 3] =
    [Number::release(1, 2, 8), Number::release(1, 3, 3), Number::candidate(1, 4, 0, 3)];

/// The first release of crun without CVE-2025-24965.
const CRUN_FLOOR: Number = Number::release(1, 20, 0);

/// Versions of distributions in which all of it was mended although their numbers are lower, as each says itself. None is
/// known to have mended all four of runc's.
const BACKPORTS: [(Backend, &str); 0] = [];

/// Whether holes are known in a build of this backend's program.
#[must_use]
pub fn judge(backend: Backend, build: Build<'_>) -> Standing {
    if let Some(said) = build.said
        && BACKPORTS.iter().any(|(program, version)| *program == backend && *version == said)
    {
        return Standing::Sound;
    }
    match backend {
        Backend::Native => Standing::Sound,
        Backend::Gvisor => judge_runsc(build),
        Backend::Runc => judge_runc(build),
        Backend::Crun => judge_crun(build),
    }
}

fn judge_runsc(build: Build<'_>) -> Standing {
    // A release says its day; a build without a stamp says that it has none, and its module knows.
    let day = build.said.and_then(release_day).or_else(|| build.module.and_then(pseudo_day));
    match day {
        Some(day) if day >= RUNSC_FLOOR => Standing::Sound,
        Some(day) => Standing::Vulnerable(format!("is of {}, older than September 2026", written(day))),
        None => {
            Standing::Vulnerable("does not say of when it is, and counts as older than September 2026".into())
        }
    }
}

fn judge_runc(build: Build<'_>) -> Standing {
    let number = build.said.and_then(Number::parse).or_else(|| build.module.and_then(Number::parse));
    let Some(number) = number else {
        return Standing::Vulnerable("does not say which version it is, and counts as old".into());
    };
    let line = |floor: &&Number| (floor.major, floor.minor) == (number.major, number.minor);
    let is_mended = match RUNC_FLOORS.iter().find(line) {
        Some(floor) => number >= *floor,
        None => RUNC_FLOORS.iter().all(|floor| number > *floor),
    };
    if is_mended {
        return Standing::Sound;
    }
    let first = RUNC_FLOORS[0];
    // The older hole has the older floor; whoever has that one has the others as well.
    let holes = if number < Number::release(1, 1, 12) && number < first {
        "CVE-2024-21626, CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881"
    } else {
        "CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881"
    };
    Standing::Vulnerable(format!("has {holes}, mended in 1.2.8, 1.3.3 and 1.4.0"))
}

fn judge_crun(build: Build<'_>) -> Standing {
    match build.said.and_then(Number::parse) {
        Some(number) if number >= CRUN_FLOOR => Standing::Sound,
        Some(_) => Standing::Vulnerable("has CVE-2025-24965, mended in 1.20".into()),
        None => Standing::Vulnerable("does not say which version it is, and counts as old".into()),
    }
}

/// The day of `release-20260901.0`.
fn release_day(said: &str) -> Option<u32> {
    day(said.strip_prefix("release-")?.split('.').next()?)
}

/// The day of a version that Go makes from a commit: `v0.0.0-20260905035102-160fafc42237`.
fn pseudo_day(module: &str) -> Option<u32> {
    let time = module.split('+').next()?.rsplit('-').nth(1)?;
    // Between a base version and a commit the time follows a dot.
    let time = time.rsplit('.').next()?;
    (time.len() == 14).then(|| day(time.get(..8)?)).flatten()
}

fn day(digits: &str) -> Option<u32> {
    let is_day = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = is_day.then(|| digits.parse().ok()).flatten()?;
    let (month, day) = (number / 100 % 100, number % 100);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(number)
}

fn written(day: u32) -> String {
    format!("{:04}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100)
}

/// A version's number; a candidate comes before its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    major: u32,
    minor: u32,
    patch: u32,
    candidate: u32,
}

impl Number {
    const RELEASE: u32 = u32::MAX;

    const fn release(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch, candidate: Self::RELEASE }
    }

    const fn candidate(major: u32, minor: u32, patch: u32, candidate: u32) -> Self {
        Self { major, minor, patch, candidate }
    }

    /// Reads `1.2.8`, `v1.4.0-rc.3`, `1.1.5+ds1`, `1.20`. What follows a number and is no candidate is a build of it from
    /// before its release, and counts as its first candidate.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next()?;
        let (numbers, rest) =
            text.split_once('-').map_or((text, None), |(numbers, rest)| (numbers, Some(rest)));
        let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let patch = match parts.next() {
            Some(patch) => patch?,
            None => 0,
        };
        if parts.next().is_some() {
            return None;
        }
        let candidate = match rest {
            None => Self::RELEASE,
            Some(rest) => rest.strip_prefix("rc.").and_then(|number| number.parse().ok()).unwrap_or(0),
        };
        Some(Self { major, minor, patch, candidate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(backend: Backend, said: &str) -> bool {
        judge(backend, Build { said: Some(said), module: None }) == Standing::Sound
    }

    #[test]
    fn runc_is_held_against_the_floor_of_its_line() {
        for sound in
            ["1.2.8", "1.2.9", "1.3.3", "1.4.0-rc.3", "1.4.0", "1.4.0+dev", "1.5.2", "2.0.0", "v1.3.6"]
        {
            assert!(said(Backend::Runc, sound), "{sound}");
        }
        let old = [
            "1.1.5+ds1",
            "1.1.15",
            "1.2.7",
            "1.3.2",
            "1.4.0-rc.2",
            "1.3.0-rc.1",
            "1.2.8-dev",
            "1.4.0-1-gabc",
        ];
        for old in old.into_iter().chain(["", "unknown", "1", "1.2.3.4", "one.two"]) {
            assert!(!said(Backend::Runc, old), "{old}");
        }
    }

    #[test]
    fn the_holes_of_an_old_runc_are_named() {
        let holes = |version| match judge(Backend::Runc, Build { said: Some(version), module: None }) {
            Standing::Vulnerable(why) => why,
            Standing::Sound => String::new(),
        };
        assert!(holes("1.1.5+ds1").contains("CVE-2024-21626"));
        assert!(!holes("1.1.15").contains("CVE-2024-21626"));
        assert!(holes("1.3.2").contains("CVE-2025-52881"));
    }

    #[test]
    fn runsc_is_as_old_as_its_stamp_or_else_its_module_says() {
        assert!(said(Backend::Gvisor, "release-20260907.0"));
        assert!(!said(Backend::Gvisor, "release-20260831.0"));
        assert!(!said(Backend::Gvisor, "release-20261399.0"));
        let unstamped = |module| judge(Backend::Gvisor, Build { said: Some("VERSION_MISSING"), module });
        assert_eq!(unstamped(Some("v0.0.0-20260905035102-160fafc42237")), Standing::Sound);
        assert_eq!(unstamped(Some("v0.0.1-0.20260905035102-160fafc42237+dirty")), Standing::Sound);
        for old in ["v0.0.0-20260831235959-160fafc42237", "(devel)", "v1.2.3", "v0.0.0-2026-abc", ""] {
            assert!(matches!(unstamped(Some(old)), Standing::Vulnerable(_)), "{old}");
        }
        assert!(matches!(unstamped(None), Standing::Vulnerable(_)), "unknown counts as old");
        // A stamp is believed before anything else, also where it tells of an older day.
        let both =
            Build { said: Some("release-20250101.0"), module: Some("v0.0.0-20260905035102-160fafc42237") };
        assert!(matches!(judge(Backend::Gvisor, both), Standing::Vulnerable(_)));
    }

    #[test]
    fn crun_is_held_against_one_floor() {
        assert!(said(Backend::Crun, "1.20") && said(Backend::Crun, "1.29.1"));
        assert!(!said(Backend::Crun, "1.8.1") && !said(Backend::Crun, "1.19.1") && !said(Backend::Crun, ""));
    }
}
