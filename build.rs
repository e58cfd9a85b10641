//! Makes the folder of the built page exist, so that it can be embedded (empty until
//! `npm run build` has run in `vrm-web`) and so that cargo notices when its content changes.

fn main() {
    let dist = "vrm-web/dist";
    if let Err(error) = std::fs::create_dir_all(dist) {
        println!("cargo::warning=`{dist}` could not be made, the page is left out: {error}");
    }
    println!("cargo::rerun-if-changed={dist}");
}
