//! Who is let in where.

/// Every route besides the API, which has a table of its own. What stands under somebody: `in`; `sign-in`, sent there
/// and back afterwards; or the status with which they are refused. The last column says how the route is reached:
/// `led`, by a link, a frame or a form of a page; or why none leads there.
const TABLE: &str = "
GET   /                               sign-in  in   in   in   led
POST  /sign-out                       401      in   in   in   led
GET   /account                        sign-in  in   in   in   led
POST  /account/password               401      in   in   in   led
POST  /account/sign-out-everywhere    401      in   in   in   led
GET   /upcoming                       sign-in  in   in   in   led
GET   /upcoming/{permit}/{step}       sign-in  in   in   in   led
POST  /upcoming/{permit}/{step}       401      403  in   in   led
GET   /upcoming/{permit}/{step}/{place}  sign-in  in  in  in  led
GET   /permits                        sign-in  in   in   in   led
POST  /permits/bulk                   401      403  in   in   led
POST  /permits/export                 401      403  in   in   led
GET   /permits/new                    sign-in  403  in   in   led
POST  /permits/new                    401      403  in   in   led
GET   /permits/{id}                   sign-in  in   in   in   led
GET   /permits/{id}/edit              sign-in  403  in   in   led
POST  /permits/{id}/edit              401      403  in   in   led
POST  /permits/{id}/renew             401      403  in   in   led
POST  /permits/{id}/pause             401      403  in   in   led
POST  /permits/{id}/archive           401      403  in   in   led
POST  /permits/{id}/restore           401      403  in   in   led
POST  /permits/{id}/steps             401      403  in   in   led
GET   /problems                       sign-in  in   in   in   led
POST  /problems/actions               401      403  in   in   led
POST  /problems/held                  401      403  in   in   led
GET   /notices                        sign-in  in   in   in   led
GET   /notices/{id}                   sign-in  in   in   in   led
GET   /notices/{id}/preview           sign-in  in   in   in   led
GET   /notices/{id}/preview/{delivery}  sign-in  in  in  in   led
GET   /notices/{id}/message/{delivery}  sign-in  in  in  in   led
POST  /notices/{id}/{verb}            401      403  in   in   led
GET   /import                         sign-in  in   in   in   led
POST  /import                         401      403  in   in   led
GET   /import/file/{id}               sign-in  in   in   in   led
POST  /import/file/{id}               401      403  in   in   led
POST  /import/mappings/{id}/remove    401      403  in   in   led
GET   /import/{id}                    sign-in  in   in   in   led
GET   /import/{id}/errors.csv         sign-in  in   in   in   led
POST  /import/{id}/release            401      403  in   in   led
POST  /import/{id}/cancel             401      403  in   in   led
GET   /scans                          sign-in  in   in   in   led
POST  /scans                          401      403  in   in   led
GET   /scans/preview                  sign-in  in   in   in   led
GET   /scans/{id}                     sign-in  in   in   in   led
GET   /permit-types                   sign-in  in   in   in   led
POST  /permit-types                   401      403  403  in   led
GET   /permit-types/{code}            sign-in  in   in   in   led
POST  /permit-types/{code}            401      403  403  in   led
GET   /suppressions                   sign-in  in   in   in   led
POST  /suppressions                   401      403  in   in   led
POST  /suppressions/{id}/lift         401      403  in   in   led
GET   /users                          sign-in  403  403  in   led
POST  /users                          401      403  403  in   led
POST  /users/{id}/role                401      403  403  in   led
POST  /users/{id}/link                401      403  403  in   led
POST  /users/{id}/disable             401      403  403  in   led
POST  /users/{id}/enable              401      403  403  in   led
GET   /tokens                         sign-in  403  403  in   led
POST  /tokens                         401      403  403  in   led
POST  /tokens/{id}/revoke             401      403  403  in   led
GET   /audit                          sign-in  403  403  in   led
GET   /sign-in                        in       in   in   in   led
POST  /sign-in                        in       in   in   in   led
GET   /set-password/{secret}          in       in   in   in   an administrator hands the link out
POST  /set-password/{secret}          in       in   in   in   led
GET   /assets/{name}                  in       in   in   in   led
GET   /docs                           in       in   in   in   led
GET   /docs/style.css                 in       in   in   in   led
GET   /docs/problems                  in       in   in   in   led
GET   /problems/{kind}                in       in   in   in   led
GET   /openapi.json                   in       in   in   in   led
GET   /livez                          in       in   in   in   for whoever runs the service
GET   /readyz                         in       in   in   in   for whoever runs the service
GET   /metrics                        in       in   in   in   for whoever runs the service
";

/// Somebody, by the column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Nobody,
    Viewer,
    Clerk,
    Admin,
}

pub const EVERYBODY: [Who; 4] = [Who::Nobody, Who::Viewer, Who::Clerk, Who::Admin];

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub method: &'static str,
    pub route: &'static str,
    cells: [&'static str; 4],
    /// None: pages lead there.
    pub why_unreached: Option<String>,
}

pub fn table() -> Vec<Row> {
    let row = |line: &'static str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [method, route, nobody, viewer, clerk, admin, ref how @ ..] = words[..] else { panic!("{line}") };
        let how = how.join(" ");
        Row { method, route, cells: [nobody, viewer, clerk, admin], why_unreached: (how != "led").then_some(how) }
    };
    TABLE.trim().lines().map(row).collect()
}

/// The line about a request; a route with words in it goes before one that takes anything in their place.
pub fn row_of<'t>(table: &'t [Row], method: &str, address: &str) -> Option<&'t Row> {
    let path = address.split('?').next().unwrap_or_default();
    let rows = table.iter().filter(|row| row.method == method && row.fits(path));
    rows.min_by_key(|row| row.route.matches('{').count())
}

impl Row {
    fn fits(&self, path: &str) -> bool {
        let (route, path): (Vec<_>, Vec<_>) = (self.route.split('/').collect(), path.split('/').collect());
        route.len() == path.len() && route.iter().zip(path).all(|(part, given)| part.starts_with('{') || *part == given)
    }

    /// What the table says of this person.
    pub fn cell(&self, who: Who) -> &'static str {
        self.cells[who as usize]
    }

    pub fn lets_in(&self, who: Who) -> bool {
        self.cell(who) == "in"
    }
}
