//! What the tests of the walls would find if the walls were not there.

use crate::harness::{Init, exec};

#[tokio::test]
async fn capabilities_stay_when_their_wall_is_taken_away() {
    let init = Init::with_arguments(&["--landlock", "off", "--weaken", "capabilities"]);
    let status = init.run(exec(&["cat", "/proc/self/status"])).await.text();
    for line in ["CapPrm", "CapEff", "CapBnd"] {
        assert!(!status.contains(&format!("{line}:\t{:016x}\n", 0)), "{line} in {status}");
    }
}
