//! `abeyant broker` in a process of its own, and its control over HTTP.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

pub struct Broker {
    pub servers: String,
    process: Child,
    control: String,
    operations: HashMap<String, Operation>,
    http: ureq::Agent,
}

struct Operation {
    method: String,
    path: String,
    query: Vec<String>,
}

impl Broker {
    /// Starts a broker that ends when it is dropped, or when this process does, which closes its stdin.
    pub fn start(arguments: &[String]) -> Broker {
        let mut command = Command::new("abeyant");
        command.arg("broker").arg("--until-stdin-closes").args(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("abeyant");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports: Value = serde_json::from_str(&line).expect("the broker's ports");
        let text = |name: &str| ports[name].as_str().unwrap().to_owned();
        let http = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let (servers, control) = (text("bootstrap.servers"), text("control"));
        let mut broker = Broker { servers, process, control, operations: HashMap::new(), http };
        broker.describe();
        broker
    }

    fn describe(&mut self) {
        let description = self.send("get", "openapi.json", None);
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                let parameters = described["parameters"].as_array().unwrap();
                let query = parameters.iter().filter(|one| one["in"] == "query");
                let operation = Operation {
                    method: method.clone(),
                    path: path.clone(),
                    query: query.map(|one| one["name"].as_str().unwrap().to_owned()).collect(),
                };
                self.operations.insert(described["operationId"].as_str().unwrap().to_owned(), operation);
            }
        }
    }

    /// Calls an operation of control by its operationId, with the values of its path and query.
    pub fn call(&self, id: &str, given: &[(&str, &str)], body: Option<&Value>) -> Value {
        let known = self.operations.get(id).unwrap_or_else(|| panic!("control has no operation {id}"));
        let mut path = known.path.clone();
        let mut query = Vec::new();
        for (name, value) in given {
            let encoded = urlencoding::encode(value);
            path = path.replace(&format!("{{{name}}}"), &encoded);
            if known.query.iter().any(|one| one == name) {
                query.push(format!("{name}={encoded}"));
            }
        }
        self.send(&known.method, &format!("{}?{}", &path[1..], query.join("&")), body)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let address = format!("{}{path}", self.control);
        let mut answer = match (method, body) {
            ("post", Some(body)) => self.http.post(&address).send_json(body),
            ("post", None) => self.http.post(&address).send_empty(),
            ("delete", _) => self.http.delete(&address).call(),
            _ => self.http.get(&address).call(),
        }
        .expect("control");
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "{method} {address}: {text}");
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status();
        let ended = self.process.wait();
        if !std::thread::panicking() {
            assert!(asked.is_ok_and(|status| status.success()) && ended.is_ok_and(|status| status.success()));
        }
    }
}
