use flashwise_block::{BlockDevice, BlockError, Progress};
use flashwise_learn::{LearnOptions, learn_step_by_step, score::score};
use flashwise_ssd::{DeviceConfig, SimulatedSsd, truth::truth};
struct Stages(String, std::time::Instant);
impl Progress for Stages {
    fn advance(&mut self, stage: &str, _: f64) -> Result<(), BlockError> {
        if stage != self.0 {
            eprintln!("  {} {:.2}", self.0, self.1.elapsed().as_secs_f64());
            self.0 = stage.to_owned();
            self.1 = std::time::Instant::now();
        }
        Ok(())
    }
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (path, cache, out) = (&args[0], &args[1], &args[2]);
    let config = DeviceConfig::from_toml(&std::fs::read_to_string(path).unwrap(), path).unwrap();
    let t = match std::fs::read_to_string(cache) {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(_) => {
            let t = truth(&config).unwrap().parameters;
            std::fs::write(cache, serde_json::to_string(&t).unwrap()).unwrap();
            t
        }
    };
    let start = std::time::Instant::now();
    let mut drive: Box<dyn BlockDevice> = Box::new(SimulatedSsd::new(config, 1).unwrap());
    let mut last = std::time::Instant::now();
    let learned = learn_step_by_step(
        &mut *drive,
        &if args.len() > 3 { LearnOptions::new("x") } else { LearnOptions::complete("x") },
        &mut Stages(String::new(), std::time::Instant::now()),
        &mut |p| {
            eprintln!("{:?} {:.2}", p.recipe.probes.last(), last.elapsed().as_secs_f64());
            last = std::time::Instant::now();
        },
    )
    .unwrap();
    eprintln!("TIME {:.1} stopped {:?}", start.elapsed().as_secs_f64(), learned.stopped);
    let mut v = serde_json::to_value(&learned.profile).unwrap();
    v["score"] = serde_json::to_value(score(&learned.profile, &t)).unwrap();
    std::fs::write(out, v.to_string()).unwrap();
}
