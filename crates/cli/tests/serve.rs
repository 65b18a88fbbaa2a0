//! `fleetfoot serve`: the program's numbers, and who is answered.

#![cfg(feature = "serve")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const SCENARIO: &str = "title = \"A short line\"\n[network]\nkind = \"dumbbell\"\npairs = 2\nbottleneck = { rate = \"4 Mbit/s\", delay = \"10 ms\", queue = { kind = \"drop-tail\", limit = \"60 packets\" } }\n[[traffic]]\nname = \"pages\"\nkind = \"transfer\"\nsize = \"30 kB\"\narrivals = { dist = \"poisson\", rate = \"3 per second\" }\n[[traffic]]\nname = \"download\"\nkind = \"bulk\"\n[run]\nduration = \"3 s\"\ndrain = \"5 s\"\nseeds = 2\n";

/// The program as a server, which ends with the test.
struct Server {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Server {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{name}"));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join("line.toml"), SCENARIO).expect("it can be written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(["serve", "--port", "0", "--json", "line.toml"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it says where it is");
        let told: Value = serde_json::from_str(&line).expect("it is JSON");
        let address = told["address"].as_str().expect("a text");
        let address = address
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        Server {
            child,
            address,
            folder,
        }
    }

    /// Status line and body; chunks are joined.
    fn ask(&self, head: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("there is a head");
        let status = head.lines().next().unwrap_or("").to_owned();
        if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return (status, body.to_owned());
        }
        let (mut joined, mut rest) = (String::new(), body);
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).expect("a size");
            joined.push_str(&after[..size]);
            rest = after[size..].strip_prefix("\r\n").unwrap_or("");
        }
        (status, joined)
    }

    fn call(&self, request: &Value) -> Value {
        let host = &self.address;
        let head = format!(
            "POST /api/call HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json"
        );
        let (status, body) = self.ask(&head, &request.to_string());
        assert!(status.contains("200"), "{status}: {body}");
        let last = body.lines().last().expect("there is an answer");
        serde_json::from_str(last).expect("it is JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the page says to paste runs as it stands in a shell, and gives the same numbers: for a file whose name and variants have
/// signs of the shell, for the home line without a file, and for an example, which is no file here.
#[test]
fn the_command_of_a_comparison_runs_as_it_stands() {
    let server = Server::start("command");
    let variant = "\n[[variant]]\nname = \"short, both ways\"\nset = { \"network.bottleneck.queue.limit\" = \"20 packets\" }\n\
        [[variant]]\nname = \"codel\"\nset = { \"network.bottleneck.queue.kind\" = \"codel\" }\n";
    let own = format!("{SCENARIO}{variant}");
    std::fs::write(server.folder.join("-it's a line.toml"), &own).expect("it can be written");
    let example = |name: &str| {
        let text = fleetfoot_web::EXAMPLES.iter().find(|(own, _)| *own == name);
        text.expect("it is there").1
    };
    let brief = ["run.duration=4 s", "run.warmup=1 s", "run.drain=2 s"];
    for (name, toml, set, only, begins) in [
        (
            "-it's a line.toml",
            own.as_str(),
            &[][..],
            &["short, both ways", "codel"][..],
            "fleetfoot compare './-it'",
        ),
        (
            "home-line.toml",
            example("home-line"),
            &brief,
            &["codel"],
            "fleetfoot compare --set ",
        ),
        (
            "cafe.toml",
            example("cafe"),
            &brief,
            &["codel"],
            "fleetfoot explain cafe | fleetfoot compare /dev/stdin ",
        ),
    ] {
        let scenario = json!({ "name": name, "toml": toml, "set": set });
        let request = json!({ "do": "compare", "scenario": scenario, "only": only, "seeds": 1, "budget": 0 });
        let told = server.call(&request);
        let command = told["answer"]["command"]
            .as_str()
            .unwrap_or_else(|| panic!("{told}"));
        assert!(command.starts_with(begins), "{command}");
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_fleetfoot"));
        let folder = program.parent().expect("it is in a folder").display();
        let script = format!("PATH={folder}:$PATH; {command} --json --quiet --force --out out");
        let made = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&server.folder)
            .output()
            .expect("there is a shell");
        assert!(
            made.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let served = told["answer"]["json"].as_str().expect("a result");
        assert_eq!(
            timeless(served),
            timeless(&String::from_utf8_lossy(&made.stdout)),
            "{command}"
        );
    }
}

/// A local program may ask as well as the page: it learns nothing of files elsewhere, not even whether they exist.
#[test]
fn files_outside_the_folder_of_the_scenario_are_not_read() {
    let server = Server::start("folder");
    let beside = server.folder.with_file_name("serve-folder-secret");
    std::fs::write(&beside, "password = hunter2\n").expect("it can be written");
    std::fs::write(server.folder.join("own.trace"), "1\n2\nthree\n").expect("it can be written");
    let secret = beside.display().to_string();
    let told = |name: &str, toml: &str, set: &[&str]| {
        let request = json!({ "do": "check", "name": name, "toml": toml, "set": set });
        server.call(&request)["error"]["text"]
            .as_str()
            .unwrap_or("accepted")
            .to_owned()
    };
    let trace =
        |file: &str| SCENARIO.replace("rate = \"4 Mbit/s\"", &format!("rate = {{ trace = \"{file}\" }}"));
    // What is read there quotes the line that is wrong.
    let own = told("line.toml", &trace("own.trace"), &[]);
    assert!(own.contains("three"), "{own}");
    let nothing = format!("{secret}-that-is-not-there");
    let list =
        |file: &str| SCENARIO.replace("kind = \"bulk\"", &format!("kind = \"flows\"\nfile = \"{file}\""));
    for text in [
        told("line.toml", &trace(&secret), &[]),
        told("line.toml", &trace("../serve-folder-secret"), &[]),
        told("line.toml", &list(&secret), &[]),
        told("line.toml", &list(&format!("{nothing}.parquet")), &[]),
        told("line.toml", &format!("extends = \"{secret}\"\n{SCENARIO}"), &[]),
        told(
            "line.toml",
            SCENARIO,
            &[&format!("network.bottleneck.rate={{ trace = \"{secret}\" }}")],
        ),
        told(&secret, "extends = \"serve-folder-secret\"\n", &[]),
        told("line.toml", &trace(&nothing), &[]),
    ] {
        assert!(text.contains("only files below"), "{text}");
        assert!(
            !text.contains("hunter2") && !text.contains("no such file"),
            "{text}"
        );
    }
    std::fs::remove_file(beside).expect("it was made here");
}

fn timeless(text: &str) -> String {
    let mut document: Value = serde_json::from_str(text).expect("it is JSON");
    document.as_object_mut().expect("an object").remove("timing");
    document.to_string()
}

#[test]
fn it_gives_the_numbers_of_compare() {
    let server = Server::start("numbers");
    let request = json!({
        "do": "compare", "scenario": { "name": "line.toml", "toml": SCENARIO, "set": ["network.bottleneck.rate=5 Mbit/s"] },
        "only": ["fq-codel", "pacing"], "seeds": 2, "budget": 0,
    });
    let told = server.call(&request);
    let served = told["answer"]["json"].as_str().expect("a result");
    let own = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args([
            "compare",
            "line.toml",
            "--set",
            "network.bottleneck.rate=5 Mbit/s",
            "--only",
            "fq-codel,pacing",
        ])
        .args([
            "--seeds", "2", "--budget", "0", "--json", "--quiet", "--force", "--out", "out",
        ])
        .current_dir(&server.folder)
        .output()
        .expect("it runs");
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
    assert_eq!(timeless(served), timeless(&String::from_utf8_lossy(&own.stdout)));
}

#[test]
fn only_its_own_page_is_answered() {
    let server = Server::start("page");
    let host = server.address.clone();
    let (status, page) = server.ask(&format!("GET / HTTP/1.1\r\nHost: {host}"), "");
    assert!(
        status.contains("200") && page.contains("A short line"),
        "{status}"
    );
    let (status, _) = server.ask("GET / HTTP/1.1\r\nHost: example.org", "");
    assert!(status.contains("403"), "{status}");
    let hello = "{\"do\":\"hello\"}";
    let post = format!("POST /api/call HTTP/1.1\r\nHost: {host}");
    let (status, _) = server.ask(
        &format!("{post}\r\nOrigin: http://example.org\r\nContent-Type: application/json"),
        hello,
    );
    assert!(status.contains("403"), "{status}");
    let (status, _) = server.ask(&format!("{post}\r\nContent-Type: text/plain"), hello);
    assert!(status.contains("415"), "{status}");
    // One byte more than a scenario with the files that came with it may have.
    let (status, _) = server.ask(
        &format!("{post}\r\nContent-Type: application/json"),
        &" ".repeat((66 << 20) + 1),
    );
    assert!(status.contains("413"), "{status}");
    let told = server.call(&json!({ "do": "check", "name": "line.toml", "toml": "title = 3" }));
    assert_eq!(told["error"]["line"], 1, "{told}");
}
