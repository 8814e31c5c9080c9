mod domain;
