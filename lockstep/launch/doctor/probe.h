#pragma once

namespace lockstep::doctor {

/// `lockstep doctor --probe`: the doctor's part on one host. Takes requests from standard input,
/// one JSON object a line, and answers each with one on standard output. Ends with its input, or
/// after ten minutes. Listens meanwhile on the first request's ports. Returns the exit status.
///
///   {"do": "facts", "me": 0, "hosts": [...], "ports": [...], "cookie": "...", "folder": "/work",
///    "log_folder": "", "hccn_conf": ""}                {"facts": {...}}
///   {"do": "clock"}                                    {"clock": seconds since 1970}
///   {"do": "links", "targets": [{index, name, asked, port}]}   {"problems": ["", ...]}
///   {"do": "measure", "target": {...}, "seconds": 0.2} {"latency_us": 20, "gbit_s": 9.4}
///   anything that fails                                {"error": "..."}
int probe();

}  // namespace lockstep::doctor
