use berth_tests::model::{Bounds, Breach, Config, Fault, check};
fn main() {
    use Breach::*;
    for breach in [
        IdsUsedAgain,
        Unconfirmed,
        ReleasedBeforeOff,
        FreedWithoutWord,
        GivesUnbuilt,
        NoHold,
        InheritsByName,
    ] {
        let mut found = false;
        for faults in Fault::sets().into_iter().filter(|f| f.len() <= 1) {
            for addrs in [1, 2] {
                let mut config = Config::new(2, addrs, &faults);
                config.breach = Some(breach);
                let r = check(&config, &Bounds { states: 150_000 });
                if let Some(v) = r.violation {
                    println!(
                        "{breach:?} caught by {faults:?} addrs {addrs} states {} : {} in {} steps",
                        r.states,
                        v.what,
                        v.schedule.len()
                    );
                    found = true;
                    break;
                }
            }
            if found {
                break;
            }
        }
        if !found {
            println!("{breach:?} NOT caught by singles");
        }
    }
}
