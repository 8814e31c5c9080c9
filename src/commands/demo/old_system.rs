//! A file from an older system, imported as an office would: one row is wrong, and the rest would mail more at once
//! than the brake allows.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    app::App,
    domain::{calendar::plus_days, saying::counted},
    files::{ImportOptions, ImportRules, Input, import},
    store::{Moment, changes::COMMAND},
};

/// Name of the file, in the folder of the demo.
pub const FILE: &str = "old-system.csv";

/// The brake of this import alone.
const CLAIM_LIMIT: u64 = 2;

/// Writes the file and imports it, good rows only. Says what came of it.
pub async fn hand_over(app: &App<'_>, moment: Moment, folder: &Path) -> Result<String> {
    let path = folder.join(FILE);
    let day = |days| plus_days(moment.today, days);
    let good = [(1, "Harbour Grill", 30), (2, "Tea & Thyme", 29), (3, "Night Owl Pizza", 28)];
    let good = good.map(|(number, business, days)| {
        format!("OLD-{number:03},food,{business},owner{number}@example.com,{}\n", day(days))
    });
    let wrong = "OLD-004,food,The Typo,typo@example,31/02/2027\n";
    let rows = format!("Licence No,Type,Business,Email,Expiry\n{}{wrong}", good.concat());
    fs::write(&path, rows).with_context(|| format!("{} cannot be written", path.display()))?;
    let rules = ImportRules {
        moment,
        zone: app.config.time_zone,
        window: app.config.send_window.as_ref(),
        claim_limit: CLAIM_LIMIT,
        catch_up: true,
        complete: false,
        dry_run: false,
        by: COMMAND,
    };
    let map = [
        "permit_number=Licence No",
        "permit_type=Type",
        "holder_name=Business",
        "holder_email=Email",
        "expires_on=Expiry",
    ];
    let map = map.iter().map(|choice| choice.parse()).collect::<Result<_, _>>()?;
    let options = ImportOptions::new(map, Vec::new(), None, None, true)?;
    let report = import(&app.database.direct_url, Input::Path(path), &options, &rules, |_| {}).await?;
    Ok(format!(
        "{}; {} rejected, {} held until somebody has looked at them.",
        counted(report.permits_created, "permit"),
        counted(report.rejected, "row"),
        counted(report.notices_held, "notice")
    ))
}
