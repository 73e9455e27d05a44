{{/* A pod that may exist only once, with a volume for its state: web or bridge. `container` is its own part. */}}
{{- define "streamgrove.single" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "streamgrove.name" $root) .component -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}
  labels: {{- include "streamgrove.labels" $root | nindent 4 }}
spec:
  serviceName: {{ $name }}
  replicas: 1
  selector:
    matchLabels: {{- include "streamgrove.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "streamgrove.selector" . | nindent 8 }}
        app.kubernetes.io/part-of: {{ $root.Chart.Name }}
      annotations:
        checksum/settings: {{ include "streamgrove.settings" $root | sha256sum }}
    spec:
      {{- include "streamgrove.pod" $root | nindent 6 }}
      securityContext:
        {{- include "streamgrove.podSecurity" $root | nindent 8 }}
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
      containers:
        - name: {{ .component }}
          image: {{ include "streamgrove.image" $root }}
          {{- if ne $root.Values.image.pullPolicy "IfNotPresent" }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          {{- end }}
          args: {{- toYaml .args | nindent 12 }}
          envFrom: {{- include "streamgrove.envFrom" . | nindent 12 }}
          {{- with printf "%s\n%s" (include "streamgrove.env" . | trim) (default "" .env) | trim }}
          env: {{- . | nindent 12 }}
          {{- end }}
          ports:
            - name: {{ .portName }}
              containerPort: {{ .port }}
          startupProbe:
            tcpSocket: { port: {{ .portName }} }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            tcpSocket: { port: {{ .portName }} }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            tcpSocket: { port: {{ .portName }} }
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: 2
          securityContext: {{- include "streamgrove.restricted" $root | nindent 12 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - name: state
              mountPath: /var/lib/streamgrove
            {{- with .mounts }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- include "streamgrove.mounts" . | nindent 12 }}
      volumes:
        {{- with .volumes }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- include "streamgrove.volumes" . | nindent 8 }}
  volumeClaimTemplates:
    - metadata:
        name: state
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .values.storage.className }}
        storageClassName: {{ . | quote }}
        {{- end }}
        resources:
          requests:
            storage: {{ .values.storage.size | toJson }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "streamgrove.labels" $root | nindent 4 }}
spec:
  selector: {{- include "streamgrove.selector" . | nindent 4 }}
  ports:
    - name: {{ .portName }}
      port: {{ .port }}
      targetPort: {{ .portName }}
{{- end -}}
