mod mail;
