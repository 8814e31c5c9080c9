//! Permits in the columns of BLDS, the Building and Land Development Specification: what the public may see. Nothing in
//! it names the holder or anybody else of the permit; its site and what it is for are as the office wrote them.

use chrono::NaiveDate;

use crate::domain::permit::PermitStatus;
use crate::files::formula::guard;
use crate::store::lists::permits::PermitRow;

/// Those that it requires, and of the others those of which we know something. It writes days as text.
pub(super) const HEADER: [&str; 16] = [
    "PermitNum",
    "Description",
    "AppliedDate",
    "IssuedDate",
    "CompletedDate",
    "StatusCurrent",
    "OriginalAddress1",
    "OriginalAddress2",
    "OriginalCity",
    "OriginalState",
    "OriginalZip",
    "StatusCurrentMapped",
    "PermitType",
    "PermitTypeMapped",
    "PermitTypeDesc",
    "ExpiresDate",
];

/// A row. What we do not know, such as the day on which somebody applied, is empty.
pub(super) fn texts(row: &PermitRow, today: NaiveDate) -> [String; 16] {
    let text = |text: Option<&str>| guard(text.unwrap_or_default()).into_owned();
    let day = |day: Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
    let unknown = String::new;
    let expires_on = row.life.expires_on;
    [
        text(Some(&row.permit_number)),
        text(row.description.as_deref()),
        unknown(),
        day(row.issued_on),
        unknown(),
        status(row.status, expires_on < today).to_owned(),
        text(row.site_address.as_deref()),
        unknown(),
        unknown(),
        unknown(),
        unknown(),
        mapped(row.status).to_owned(),
        text(Some(&row.permit_type)),
        unknown(),
        text(Some(&row.type_name)),
        day(Some(expires_on)),
    ]
}

/// The status in the office's words. That a permit has run out is its date's word here, for who reads only this.
const fn status(status: PermitStatus, is_over: bool) -> &'static str {
    match status {
        PermitStatus::Active if is_over => "Expired",
        PermitStatus::Active => "Active",
        PermitStatus::Suspended => "Suspended",
        PermitStatus::Revoked => "Revoked",
        PermitStatus::Surrendered => "Surrendered",
        PermitStatus::Closed => "Closed",
    }
}

/// The status in the six words that BLDS has; it has none for what has run out.
const fn mapped(status: PermitStatus) -> &'static str {
    match status {
        PermitStatus::Active | PermitStatus::Suspended => "Permit Issued",
        PermitStatus::Revoked | PermitStatus::Surrendered => "Permit Cancelled",
        PermitStatus::Closed => "Permit Finaled",
    }
}
